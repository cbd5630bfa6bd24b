// Builds the package in `dist`, with a manifest of its own. `dist` is packed and published, and this folder is not.
import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

process.chdir(fileURLToPath(new URL('.', import.meta.url)));
rmSync('dist', { recursive: true, force: true });
const read = (file) => JSON.parse(readFileSync(file, 'utf8'));
const names = ['index', 'next', 'prisma', 'drizzle'];
await build({
  absWorkingDir: process.cwd(),
  entryPoints: [...names, 'outside-next', 'cli'].map((name) => `src/${name}.ts`),
  outdir: 'dist',
  tsconfig: 'tsconfig.json',
  bundle: true,
  splitting: true,
  packages: 'external',
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
});
for (const file of ['README.md', 'CHANGELOG.md', 'LICENSE']) cpSync(file, `dist/${file}`);

const tsc = path.join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc');
execFileSync(process.execPath, [tsc, '--project', 'tsconfig.build.json'], { stdio: 'inherit' });
// Node.js and TypeScript find a relative module only by its complete name, and know nothing of `paths`.
const { paths } = read('tsconfig.json').compilerOptions;
const own = 'packages/clerk-identity-link/src';
for (const file of readdirSync('dist/types', { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.d.ts')) continue;
  const complete = (name) => {
    if (name.startsWith('.')) return `${name}.js`;
    const target = paths[name]?.[0].replace(/^\.\/src\/(.*)\.ts$/, `${own}/$1`) ?? name.slice(1);
    const relative = path.relative(path.dirname(file), target);
    return `${relative.startsWith('.') ? '' : './'}${relative}.js`;
  };
  const types = readFileSync(`dist/types/${file}`, 'utf8');
  writeFileSync(
    `dist/types/${file}`,
    types.replace(/(?<=(?:from |import\()['"])(?:#lib\/|\.)[^'"]*/g, complete),
  );
}

const { private: _private, devDependencies, scripts, ...manifest } = read('package.json');
// npm publishes provenance only if the manifest names the repository of the workflow.
const { GITHUB_REPOSITORY: repository } = process.env;
const url = `git+https://github.com/${repository}.git`;
const exportOf = (name) => ({
  types: `./types/${own}/${name}.d.ts`,
  ...(name === 'next' && { 'clerk-identity-link': './outside-next.js', 'react-server': './next.js' }),
  default: name === 'next' ? './outside-next.js' : `./${name}.js`,
});
const published = {
  ...manifest,
  ...(repository && { repository: { type: 'git', url, directory: 'packages/clerk-identity-link' } }),
  exports: Object.fromEntries(names.map((name) => [name === 'index' ? '.' : `./${name}`, exportOf(name)])),
  bin: 'cli.js',
};
writeFileSync('dist/package.json', `${JSON.stringify(published, undefined, 2)}\n`);
