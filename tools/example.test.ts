import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { BUILD_FOLDER, withoutServiceVariables } from '../tests/harness/build';
import { temporaryFolder } from '../tests/vitest/temporary-folder';
import { CHECK_TYPES, copyFiles, EXAMPLE_GROUPS, linkFiles, run } from './temporary-project';

// `npm run example` adds the files of examples/ to a copy of this checkout, and runs checks and tests in this copy.
// `-- -t projects` selects the tests whose title contains `projects`.

const TIMEOUT_MS = 600_000;

const folder = temporaryFolder();
linkFiles('node_modules', path.join(folder, 'node_modules'));

/** Removes the files of the previous examples and their build, adds those of the given ones, and runs the commands. */
async function runWith(examples: readonly string[], commands: readonly string[]): Promise<void> {
  for (const name of readdirSync(folder))
    if (name !== 'node_modules') rmSync(path.join(folder, name), { recursive: true });
  copyFiles(folder);
  for (const example of examples) cpSync(path.join('examples', example), folder, { recursive: true });
  // With the cache of another build, a build takes a third of the time.
  const cache = path.join(BUILD_FOLDER, 'cache');
  if (existsSync(cache)) cpSync(cache, path.join(folder, cache), { recursive: true });
  for (const command of commands)
    await run(command, folder, { ...withoutServiceVariables(), NODE_ENV: 'test' });
}

/** Returns a command that runs the tests of the examples in a folder of tests, or no command if there are none. */
function commandFor(program: string, tests: string, examples: readonly string[]): string[] {
  const files = examples.flatMap((example) =>
    readdirSync(path.join('examples', example, 'tests'), { recursive: true, encoding: 'utf8' })
      .filter((file) => new RegExp(`^(?:${tests})/.*\\.test\\.ts$`).test(file))
      .map((file) => path.join('tests', file)),
  );
  return files.length > 0 ? [[program, ...files].join(' ')] : [];
}

test.each(EXAMPLE_GROUPS.flat())(
  'The example %s alone has no type errors, and its tests that need no build pass',
  (example) => runWith([example], [CHECK_TYPES, ...commandFor('npx vitest run', 'in-process', [example])]),
  TIMEOUT_MS,
);

// tools/example-without-clerk.test.ts adds the example without Clerk.
test('Each example is in one group', () => {
  expect([...EXAMPLE_GROUPS.flat(), 'without-clerk'].toSorted()).toEqual(readdirSync('examples').toSorted());
});

test.each(EXAMPLE_GROUPS.map((examples) => [examples.join(' and '), examples] as const))(
  'The examples %s together have no type errors and no unused code, and their tests pass',
  (_names, examples) =>
    runWith(examples, [
      CHECK_TYPES,
      'npx knip',
      ...commandFor('npx vitest run', 'in-process|service', examples),
      ...commandFor('npx playwright test', 'e2e', examples),
    ]),
  TIMEOUT_MS,
);
