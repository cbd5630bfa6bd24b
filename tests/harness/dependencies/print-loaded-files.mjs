// A test preloads this module into a process of the service. On exit, the process prints the files that `require` loaded. The
// build output loads modules with `require`.
import { writeSync } from 'node:fs';
import Module from 'node:module';

process.on('exit', () => writeSync(1, `loaded: ${Object.keys(Module._cache).join(' ')}\n`));
