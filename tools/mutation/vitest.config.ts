import { readFileSync } from 'node:fs';
import path from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import base from '../../vitest.config';

/**
 * Names of the Vitest projects whose tests Stryker runs. Stryker runs first with the unit tests, and then with the in-process
 * tests, which call lib/ with a real PostgreSQL.
 */
const PROJECTS: readonly unknown[] =
  process.env['MUTATION_RUN'] === 'in-process' ? ['in-process'] : ['unit', 'unit-react-server'];
/**
 * Unit tests that Stryker does not run: tests of code outside of lib/, and slow tests of guarantees that faster tests also
 * check.
 */
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
 * Time limits for tests, in milliseconds. They end a test that hangs because of a mutant (the code with one change). Without a
 * mutant, tests take far less time.
 */
const LIMITS = {
  testTimeout: 30_000,
  hookTimeout: 30_000,
  expect: { poll: { timeout: 5_000 } },
};

/**
 * Sorts test files. Stryker stops testing a mutant at the first failing test, so the files that are likely to fail run first.
 * If only one source file is mutated, the test file with the name of this source file comes first. Files that failed in their
 * last run come next, then all other files by size, smallest first.
 */
class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { cache, config } = this.ctx;
    const changed = (config.related ?? []).map((file) => path.basename(file, '.ts'));
    const rankOf = ({ moduleId, project }: TestSpecification) => {
      if (changed.length === 1 && changed.includes(path.basename(moduleId, '.test.ts'))) return 0;
      const key = `${project.name}:${path.relative(config.root, moduleId)}`;
      return cache.getFileTestResults(key)?.failed ? 1 : readFileSync(moduleId).length;
    };
    return files.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: Sequencer },
    projects: (base.test?.projects ?? []).flatMap((project) =>
      typeof project === 'object' && 'test' in project && PROJECTS.includes(project.test?.name)
        ? [
            {
              ...project,
              test: {
                ...project.test,
                ...LIMITS,
                maxWorkers: 1,
                exclude: EXCLUDED.map((name) => `tests/unit/${name}.test.ts`),
              },
            },
          ]
        : [],
    ),
  },
});
