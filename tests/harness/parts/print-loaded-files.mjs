// Preloaded into a process of the service: at its end it says which files it has loaded by `require`, as builds do.
import { writeSync } from 'node:fs';
import Module from 'node:module';

process.on('exit', () => writeSync(1, `loaded: ${Object.keys(Module._cache).join(' ')}\n`));
