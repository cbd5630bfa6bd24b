import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const read = (file) => JSON.parse(readFileSync(file, 'utf8'));

/**
 * Builds the package of this folder in `dist`, with a manifest of its own. `dist` is packed and published, and the folder is not:
 * inside this repository, the `exports` of package.json may be the sources, so that a change needs no build. `names` are the
 * modules that the package exports, and `others` further programs and modules. `types` is the folder of the declarations of
 * `src`, and `conditions` has the files of an export that has several. Throws if a module imports a package that package.json does
 * not declare, or if an export cannot be loaded.
 */
export async function buildPackage({ names, others, files, types = '.', conditions = {} }) {
  rmSync('dist', { recursive: true, force: true });
  const { metafile } = await build({
    metafile: true,
    absWorkingDir: process.cwd(),
    entryPoints: [...names, ...others].map((name) => `src/${name}.ts`),
    outdir: 'dist',
    tsconfig: 'tsconfig.build.json',
    bundle: true,
    splitting: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
  });
  const { private: _private, devDependencies, scripts, ...manifest } = read('package.json');
  const declared = { ...manifest.dependencies, ...manifest.peerDependencies };
  /** Throws for a module of a package that an installation may not have. */
  function checkDeclared(module) {
    const name = /^(?:@[^/]+\/)?[^/]+/.exec(module)?.[0];
    if (!isBuiltin(module) && !Object.hasOwn(declared, name))
      throw new Error(`package.json does not declare ${name}`);
  }
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports);
  for (const each of imports) if (each.external) checkDeclared(each.path);
  for (const file of files) cpSync(file, `dist/${file}`);

  const { resolve } = createRequire(path.resolve('package.json'));
  const tsc = path.join(resolve('typescript/package.json'), '../bin/tsc');
  execFileSync(process.execPath, [tsc, '--project', 'tsconfig.build.json'], { stdio: 'inherit' });
  // Node.js and TypeScript find a relative module only by its complete name.
  for (const file of readdirSync('dist', { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.d.ts')) continue;
    const text = readFileSync(`dist/${file}`, 'utf8');
    for (const [module] of text.matchAll(/(?<=(?:from |import\()['"])[^.'"][^'"]*/g)) checkDeclared(module);
    writeFileSync(`dist/${file}`, text.replace(/(?<=(?:from |import\()['"])\.[^'"]*/g, '$&.js'));
  }

  // npm publishes provenance only if the manifest names the repository of the workflow.
  const { GITHUB_REPOSITORY: repository } = process.env;
  const url = `git+https://github.com/${repository}.git`;
  const published = {
    ...manifest,
    ...(repository && { repository: { type: 'git', url, directory: `packages/${manifest.name}` } }),
    exports: Object.fromEntries(
      names.map((name) => [
        name === 'index' ? '.' : `./${name}`,
        {
          types: `./${path.join(types, name)}.d.ts`,
          ...(conditions[name] ?? { default: `./${name}.js` }),
        },
      ]),
    ),
    // For `moduleResolution: node10`, which does not read `exports`.
    types: `./${path.join(types, 'index')}.d.ts`,
    typesVersions: {
      '*': Object.fromEntries(names.map((name) => [name, [path.join(types, `${name}.d.ts`)]])),
    },
    bin: 'cli.js',
  };
  writeFileSync('dist/package.json', `${JSON.stringify(published, undefined, 2)}\n`);
  for (const name of names)
    await import(pathToFileURL(path.resolve('dist', conditions[name]?.default ?? `${name}.js`)).href);
}
