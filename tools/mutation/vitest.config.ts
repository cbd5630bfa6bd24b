import { readFileSync } from 'node:fs';
import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import base from '../../vitest.config';

/** Names of the Vitest projects of a run. The first run uses the unit tests, the second run uses the in-process tests. */
const PROJECTS: readonly unknown[] =
  process.env['MUTATION_RUN'] === 'in-process' ? ['in-process'] : ['unit', 'unit-react-server'];
/** Unit tests of code outside of lib/, and slow unit tests of guarantees that faster tests check as well. */
const EXCLUDED = [
  'cost-*',
  'interleavings',
  'model',
  'next-config',
  'progress',
  'prose',
  'scale',
  'state-file',
];

/**
 * Time limits for tests, because a mutant (the code with one change) can hang a test. Without a mutant, tests take far less.
 */
const LIMITS = {
  testTimeout: 30_000,
  hookTimeout: 30_000,
  expect: { poll: { timeout: 5_000 } },
};

/**
 * Sorts test files: first the test file with the name of the mutated source file, then the other test files by size, smallest
 * first. The first failure ends a run, so the tests that are likely to fail and the fast tests run first.
 */
class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const changed = (this.ctx.config.related ?? []).map((file) => path.basename(file, '.ts'));
    const rankOf = ({ moduleId }: TestSpecification) =>
      changed.length === 1 && changed.includes(path.basename(moduleId, '.test.ts'))
        ? 0
        : readFileSync(moduleId).length;
    return files.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: Sequencer },
    globalSetup: ['tests/vitest/global-setup.ts'],
    projects: (base.test?.projects ?? []).flatMap((project) =>
      typeof project === 'object' && 'test' in project && PROJECTS.includes(project.test?.name)
        ? [
            {
              ...project,
              test: {
                ...project.test,
                ...LIMITS,
                exclude: EXCLUDED.map((name) => `tests/unit/${name}.test.ts`),
              },
            },
          ]
        : [],
    ),
  },
});
