import { execFileSync } from 'node:child_process';
import { cpSync, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { removeStaleFiles } from '../dev/system/stale-files';
import { addExample, EXAMPLE } from './example-files';
import { linkFiles } from './link-files';
import { runStep, stopStep } from './run-step';

/**
 * `npm run example`: adds the files of examples/projects to a copy of this checkout. Runs the checks of the project and the
 * tests of the example in this copy. The tests build the project. Exits with 1 if a step fails. Removes the copy at the end,
 * also after Ctrl-C.
 */
const PREFIX = 'identity-link-example-';

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

removeStaleFiles(os.tmpdir(), PREFIX);
const folder = mkdtempSync(path.join(os.tmpdir(), PREFIX));
const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await stopStep();
    remove();
    process.exit(130);
  });
}

try {
  copyCheckout(folder);
  linkFiles('node_modules', path.join(folder, 'node_modules'));
  addExample(folder);
  for (const step of STEPS) {
    const startedAt = performance.now();
    if ((await runStep(step, folder)) !== 0) {
      console.error(`Failed: ${step.join(' ')}`);
      process.exitCode = 1;
      break;
    }
    console.log(`${Math.round((performance.now() - startedAt) / 1000)} s`);
  }
} finally {
  remove();
}
