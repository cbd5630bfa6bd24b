import { cpSync } from 'node:fs';
import { buildPackage } from '../build.mjs';

await buildPackage({
  names: ['index', 'testing', 'playwright'],
  others: ['cli'],
  files: ['README.md', 'LICENSE'],
});
cpSync('src/console/page', 'dist/page', { recursive: true, filter: (file) => !file.endsWith('.d.ts') });
