import { execFileSync } from 'node:child_process';
import { cpSync, lstatSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { addExample, EXAMPLE } from './example-files';
import { inTemporaryFolder, linkFiles, runStep } from './temporary-project';

/**
 * `npm run example`: adds the files of examples/projects to a copy of this checkout. In this copy, checks types and imports,
 * searches for unused code, and runs the tests of the example. The tests build the project. Exits with 1 if a step fails.
 * Removes the copy at the end, also after Ctrl-C.
 */

/** Copies the files of this checkout that git does not ignore, except examples/. */
function copyCheckout(folder: string): void {
  const options = ['--cached', '--others', '--exclude-standard', '--deduplicate', '-z'];
  const files = execFileSync('git', ['ls-files', ...options], { encoding: 'utf8', maxBuffer: 2 ** 24 });
  for (const file of files.split('\0').filter(Boolean)) {
    if (file.startsWith('examples/') || !lstatSync(file, { throwIfNoEntry: false })) continue;
    cpSync(file, path.join(folder, file));
  }
}

const TESTS = readdirSync(path.join(EXAMPLE, 'tests'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .map((file) => path.join('tests', file));

/** The steps after the files are added. The build in the tests fails without `npm run routes`. */
const STEPS = [
  ['npx', 'prisma', 'generate'],
  ['npm', 'run', '--silent', 'routes'],
  ['npm', 'run', '--silent', 'check:types'],
  ['npx', 'knip'],
  ['npm', 'run', '--silent', 'check:imports'],
  ['npx', 'vitest', 'run', ...TESTS],
] as const;

await inTemporaryFolder('identity-link-example-', async (folder) => {
  copyCheckout(folder);
  linkFiles('node_modules', path.join(folder, 'node_modules'));
  addExample(folder);
  for (const step of STEPS) {
    if ((await runStep(step, folder)) === 0) continue;
    console.error(`Failed: ${step.join(' ')}`);
    process.exitCode = 1;
    return;
  }
});
