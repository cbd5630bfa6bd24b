import { defineConfig } from 'vitest/config';

/** Tests that build applications or take minutes: `npm run hosts`, `npm run verify:vercel` and `npm run soak`. */
export default defineConfig({
  test: {
    dir: 'tools',
    globalSetup: ['tests/vitest/start-database.ts'],
    pool: 'forks',
    execArgv: ['--import', './tests/vitest/exit-with-vitest.mjs'],
    // Most steps use one core.
    maxWorkers: 3,
    reporters: 'verbose',
    // The timeouts (in milliseconds) only end tests that hang.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
  },
});
