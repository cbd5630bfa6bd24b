import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { removeStaleFiles } from '../dev/system/stale-files';
import { type StartedProcess, startProcess } from '../dev/system/start-process';
import { copyFiles, linkFiles } from './temporary-project';

/**
 * `npm run example`: adds the files of each folder in examples/ to a copy of this checkout. In this copy, checks types and
 * imports, searches for unused code, and runs the tests of the example, which may build the project. Does the same for the
 * examples that also work together, and runs only the tests of each of them alone. Arguments select examples, such as
 * `-- projects`. Exits with 1 if a step fails. After SIGINT or SIGTERM, stops the running step and removes the copy.
 */
const TOGETHER = ['onboarding', 'profiles'];
const CHECKS = [
  ['npx', 'next', 'typegen'],
  ['npx', 'tsc', '--noEmit'],
  ['npx', 'knip'],
] as const;
/** Start of the name of the folder of the copy. */
const PREFIX = 'identity-link-example-';

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

let running: StartedProcess | undefined;

/** Runs a command. Prints it and how long it took. Resolves with the exit code. */
async function runStep([command, ...args]: readonly [string, ...string[]], cwd: string): Promise<unknown> {
  console.log(`\n$ ${command} ${args.join(' ')}`);
  const startedAt = performance.now();
  running = startProcess(command, args, {
    cwd,
    output: 'inherit',
    group: true,
    signal: 'SIGINT',
    graceMs: 15_000,
  });
  const code = await running.exited;
  console.log(`${Math.round((performance.now() - startedAt) / 1000)} s`);
  return code;
}

const selected = process.argv.slice(2);
const all = [...readdirSync('examples').map((example) => [example]), TOGETHER];

removeStaleFiles(os.tmpdir(), PREFIX);
const folder = mkdtempSync(path.join(os.tmpdir(), PREFIX));
const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await running?.stop();
    remove();
    process.exit(130);
  });
}
try {
  linkFiles('node_modules', path.join(folder, 'node_modules'));
  for (const examples of selected.length > 0 ? [selected] : all) {
    console.log(`\n${examples.join(' and ')}`);
    layOver(folder, examples);
    for (const step of stepsFor(examples)) {
      const code = await runStep(step, folder);
      if (code !== 0) throw new Error(`${step.join(' ')} failed with ${code}.`);
    }
  }
} finally {
  remove();
}
