// Builds the package in `dist`, with a manifest of its own. `dist` is packed and published, and this folder is not: inside this
// repository, the `exports` of package.json are the sources, so that a change needs no build.
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

process.chdir(fileURLToPath(new URL('.', import.meta.url)));
rmSync('dist', { recursive: true, force: true });
const names = ['index', 'testing', 'playwright'];
await build({
  absWorkingDir: process.cwd(),
  entryPoints: [...names, 'cli'].map((name) => `src/${name}.ts`),
  outdir: 'dist',
  bundle: true,
  splitting: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
});
cpSync('src/console/page', 'dist/page', { recursive: true, filter: (file) => !file.endsWith('.d.ts') });
for (const file of ['README.md', 'LICENSE']) cpSync(file, `dist/${file}`);

const tsc = path.join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc');
execFileSync(process.execPath, [tsc, '--project', 'tsconfig.build.json'], { stdio: 'inherit' });
// Node.js and TypeScript find a relative module only by its complete name.
for (const file of readdirSync('dist', { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.d.ts')) continue;
  const types = readFileSync(`dist/${file}`, 'utf8');
  writeFileSync(`dist/${file}`, types.replace(/(?<=from '\.[^']*)(?=')/g, '.js'));
}

const {
  private: _private,
  devDependencies,
  scripts,
  ...manifest
} = JSON.parse(readFileSync('package.json', 'utf8'));
// npm publishes provenance only if the manifest names the repository of the workflow.
const { GITHUB_REPOSITORY: repository } = process.env;
const url = `git+https://github.com/${repository}.git`;
const published = {
  ...manifest,
  ...(repository && { repository: { type: 'git', url, directory: 'packages/clerk-emulator' } }),
  exports: Object.fromEntries(
    names.map((name) => [
      name === 'index' ? '.' : `./${name}`,
      { types: `./${name}.d.ts`, default: `./${name}.js` },
    ]),
  ),
  bin: 'cli.js',
};
writeFileSync('dist/package.json', `${JSON.stringify(published, undefined, 2)}\n`);
