import { defineConfig } from 'vitest/config';

const common = {
  setupFiles: ['tests/vitest/no-console-errors.ts'],
  pool: 'forks' as const,
  execArgv: ['--import', './tests/vitest/exit-with-vitest.mjs'],
  // With `false`, a worker process loads each package once. With `true`, it would load each package once per test file.
  isolate: false,
  // The timeouts (in milliseconds) only end tests that hang. They are long, because the machine may be slow.
  testTimeout: 180_000,
  expect: { poll: { timeout: 30_000 } },
  hookTimeout: 180_000,
  teardownTimeout: 30_000,
};

/** Number of worker processes for a machine with two cores. Most tests often wait, for example for a service. */
const IO_BOUND = { maxWorkers: 4 };

/** Global setup files. The unit tests need none. */
const DATABASE = ['tests/vitest/start-database.ts'];
const SERVICES = [...DATABASE, 'tests/vitest/prepare-services.ts'];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          ...common,
          ...IO_BOUND,
          include: ['tests/{unit,model}/*.test.ts'],
          setupFiles: [...common.setupFiles, 'tests/vitest/fresh-modules.ts'],
        },
      },
      {
        test: {
          name: 'unit-react-server',
          ...common,
          ...IO_BOUND,
          // React exports its server API only with this condition, which Next.js sets for the middleware.
          execArgv: [...common.execArgv, '--conditions=react-server'],
          include: ['tests/unit/react-server/*.test.ts'],
        },
      },
      {
        test: {
          name: 'in-process',
          ...common,
          ...IO_BOUND,
          include: ['tests/in-process/*.test.ts'],
          globalSetup: DATABASE,
          setupFiles: [...common.setupFiles, 'tests/vitest/fresh-modules.ts'],
        },
      },
      {
        test: {
          name: 'integration',
          ...common,
          ...IO_BOUND,
          setupFiles: [...common.setupFiles, 'tests/vitest/validate-responses.ts'],
          include: ['tests/{service,stack}/**/*.test.ts'],
          globalSetup: SERVICES,
        },
      },
    ],
  },
});
