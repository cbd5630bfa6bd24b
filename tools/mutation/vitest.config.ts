import { defineConfig } from 'vitest/config';
import base from '../../vitest.config';

const PROJECTS: readonly unknown[] = ['unit', 'in-process'];
/** Time limits, in milliseconds, of a test that hangs because of a mutant. */
const LIMITS = { testTimeout: 30_000, hookTimeout: 30_000, expect: { poll: { timeout: 5_000 } } };

/** The tests that import lib/. The tests of tests/model are too slow to run for each mutant. */
export default defineConfig({
  test: {
    projects: (base.test?.projects ?? []).flatMap((project) =>
      typeof project === 'object' && 'test' in project && PROJECTS.includes(project.test?.name)
        ? [{ ...project, test: { ...project.test, ...LIMITS, maxWorkers: 1, exclude: ['tests/model/**'] } }]
        : [],
    ),
  },
});
