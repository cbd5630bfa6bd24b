import { defineConfig } from 'vitest/config';

const bounds = {
  setupFiles: ['tests/vitest/no-console-errors.ts'],
  pool: 'forks' as const,
  execArgv: ['--import', './tests/vitest/end-with-vitest.mjs'],
  // Otherwise each file would load the same packages anew.
  isolate: false,
  // Far above what a test takes: the machine may be slow, and no test is about time.
  testTimeout: 180_000,
  expect: { poll: { timeout: 30_000 } },
  hookTimeout: 180_000,
  teardownTimeout: 30_000,
};

/** What runs at once on two cores: of browsers, which compute, two; of services, which wait for one another, three. */
const BUSY = { maxWorkers: 2, sequence: { groupOrder: 0 } };
const WAITING = { maxWorkers: 3, sequence: { groupOrder: 1 } };

/** Vitest compiles the sources of the emulator. With the default condition, tsx would compile them for each test file. */
const ssr = { resolve: { conditions: ['clerk-emulator-source', 'node', 'development|production'] } };

export default defineConfig({
  test: {
    globalSetup: ['tests/vitest/global-setup.ts'],
    projects: [
      {
        ssr,
        test: {
          name: 'unit',
          ...bounds,
          ...WAITING,
          include: ['tests/unit/**/*.test.ts'],
          setupFiles: [...bounds.setupFiles, 'tests/vitest/fresh-modules.ts'],
        },
      },
      {
        ssr,
        test: {
          name: 'emulator',
          ...bounds,
          ...WAITING,
          setupFiles: [...bounds.setupFiles, 'tests/vitest/clerk-specification.ts'],
          include: ['packages/clerk-emulator/tests/**/*.test.ts'],
        },
      },
      {
        ssr,
        test: {
          name: 'integration',
          ...bounds,
          ...WAITING,
          setupFiles: [
            ...bounds.setupFiles,
            'tests/vitest/held-to-document.ts',
            'tests/vitest/clerk-specification.ts',
          ],
          include: ['tests/{service,stack}/**/*.test.ts'],
        },
      },
      {
        ssr,
        test: {
          name: 'e2e',
          ...bounds,
          ...BUSY,
          setupFiles: [...bounds.setupFiles, 'tests/vitest/clerk-specification.ts'],
          include: ['tests/e2e/**/*.test.ts'],
        },
      },
    ],
  },
});
