import { cpSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { copyFiles, inTemporaryFolder, linkFiles, runStep } from './temporary-project';

/**
 * `npm run example`: adds the files of each folder in examples/ to a copy of this checkout. In this copy, checks types and
 * imports, searches for unused code, and runs the tests of the example, which may build the project. Does the same for the
 * examples that also work together, and runs only the tests of each of them alone. Arguments select examples, such as
 * `-- projects`. Exits with 1 if a step fails.
 */
const TOGETHER = ['onboarding', 'profiles'];
const CHECKS = [
  ['npx', 'next', 'typegen'],
  ['npx', 'tsc', '--noEmit'],
  ['npx', 'knip'],
] as const;

/** Returns the paths of an example's tests. */
const testsOf = (example: string) =>
  readdirSync(path.join('examples', example, 'tests'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => path.join('tests', file));

function stepsFor(examples: readonly string[]): (readonly [string, ...string[]])[] {
  const isPart = examples.length === 1 && examples.every((example) => TOGETHER.includes(example));
  const tests = examples.flatMap(testsOf);
  const browserTests = tests.filter((file) => file.startsWith('tests/e2e/'));
  return [
    ['npx', 'prisma', 'generate'],
    ...(isPart ? [] : CHECKS),
    ['npx', 'vitest', 'run', ...tests.filter((file) => !browserTests.includes(file))],
    ...(browserTests.length > 0 ? [['npx', 'playwright', 'test', ...browserTests] as const] : []),
  ];
}

/** Removes the files of the previous examples and their build, and adds those of the given ones. */
function layOver(folder: string, examples: readonly string[]): void {
  for (const name of readdirSync(folder))
    if (name !== 'node_modules') rmSync(path.join(folder, name), { recursive: true });
  copyFiles(folder);
  for (const example of examples) cpSync(path.join('examples', example), folder, { recursive: true });
}

const selected = process.argv.slice(2);
const all = [...readdirSync('examples').map((example) => [example]), TOGETHER];

await inTemporaryFolder('identity-link-example-', async (folder) => {
  linkFiles('node_modules', path.join(folder, 'node_modules'));
  for (const examples of selected.length > 0 ? [selected] : all) {
    console.log(`\n${examples.join(' and ')}`);
    layOver(folder, examples);
    for (const step of stepsFor(examples)) {
      if ((await runStep(step, folder)) === 0) continue;
      console.error(`Failed: ${step.join(' ')}`);
      process.exitCode = 1;
      return;
    }
  }
});
