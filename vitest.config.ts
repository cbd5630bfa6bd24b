import { defineConfig } from 'vitest/config';

const common = {
  setupFiles: ['tests/vitest/no-console-errors.ts'],
  pool: 'forks' as const,
  execArgv: ['--import', './tests/vitest/exit-with-vitest.mjs'],
  // With `false`, a worker process loads each package once. With `true`, it would load each package once per test file.
  isolate: false,
  // The timeouts (in milliseconds) only end tests that hang, also on a machine with other work.
  testTimeout: 120_000,
  expect: { poll: { timeout: 60_000 } },
  hookTimeout: 180_000,
  // Each worker loads the packages again, so more workers than cores take longer.
  maxWorkers: '100%',
  teardownTimeout: 30_000,
};

/** These tests often wait for a database or a service, so more workers than cores are useful. Each group runs after the one before. */
const WAITING_FOR_DATABASE = { maxWorkers: 3, sequence: { groupOrder: 1 } };
const WAITING = { maxWorkers: 4, sequence: { groupOrder: 2 } };

/** Timeouts of tests that build pages with `next dev`, use a browser or run for a long time. */
const SLOW = { testTimeout: 180_000, hookTimeout: 180_000 };

/** Global setup files. The unit tests need none. */
const DATABASE = ['tests/vitest/start-database.ts'];
const BUILD = [...DATABASE, 'tests/vitest/prepare-services.ts'];

export default defineConfig({
  test: {
    // `npm test` runs two Vitest processes at a time, so neither may redraw the end of the terminal.
    reporters: [['default', { summary: false }]],
    projects: [
      {
        test: {
          name: 'unit',
          ...common,
          include: ['tests/{unit,model}/*.test.ts'],
          setupFiles: [...common.setupFiles, 'tests/vitest/fresh-modules.ts'],
        },
      },
      {
        test: {
          name: 'in-process',
          ...common,
          ...WAITING_FOR_DATABASE,
          include: ['tests/in-process/*.test.ts', 'packages/clerk-identity-link/tests/database/*.test.ts'],
          globalSetup: DATABASE,
          setupFiles: [...common.setupFiles, 'tests/vitest/fresh-modules.ts'],
        },
      },
      {
        test: {
          name: 'service',
          ...common,
          ...WAITING,
          setupFiles: [...common.setupFiles, 'tests/vitest/validate-responses.ts'],
          include: ['tests/service/*.test.ts'],
          globalSetup: [...BUILD, 'tests/vitest/start-service.ts'],
        },
      },
      {
        test: {
          // `npm test` omits this project, and `npm run test:all` includes it.
          name: 'slow',
          ...common,
          ...WAITING,
          ...SLOW,
          setupFiles: [...common.setupFiles, 'tests/vitest/validate-responses.ts'],
          // The tests of the package's commands run a type checker for as long as all unit tests.
          include: ['tests/{slow,stack}/*.test.ts', 'packages/clerk-identity-link/tests/*.test.ts'],
          globalSetup: BUILD,
        },
      },
    ],
  },
});
