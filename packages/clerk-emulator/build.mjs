import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { buildPackage } from '../build.mjs';

const names = ['index', 'testing', 'playwright'];
await buildPackage({ names, others: ['cli'], files: ['README.md', 'LICENSE'] });
cpSync('src/console/page', 'dist/page', { recursive: true, filter: (file) => !file.endsWith('.d.ts') });

/** The declarations that those of the exports import. The others are left out. */
const needed = new Set();
function need(file) {
  if (needed.has(file)) return;
  needed.add(file);
  const imports = readFileSync(`dist/${file}`, 'utf8').matchAll(/['"](\.[^'"]+)\.js['"]/g);
  for (const [, name] of imports) need(path.join(path.dirname(file), `${name}.d.ts`));
}
for (const name of names) need(`${name}.d.ts`);
for (const file of readdirSync('dist', { recursive: true }))
  if (file.endsWith('.d.ts') && !needed.has(file)) rmSync(`dist/${file}`);
