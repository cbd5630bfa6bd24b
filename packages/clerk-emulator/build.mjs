import { cpSync, rmSync } from 'node:fs';
import { buildPackage } from '../build.mjs';

await buildPackage({
  names: ['index', 'testing', 'playwright'],
  others: ['cli'],
  files: ['README.md', 'LICENSE'],
});
cpSync('src/console/page', 'dist/page', { recursive: true, filter: (file) => !file.endsWith('.d.ts') });
// The exported types do not need the declarations of these folders.
for (const folder of ['backend-api', 'console', 'frontend-api'])
  rmSync(`dist/${folder}`, { recursive: true });
