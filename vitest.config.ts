import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    setupFiles: ['tests/support/end-with-vitest.ts', 'tests/support/no-console-errors.ts'],
    globalSetup: ['tests/support/global-setup.ts'],
    include: ['tests/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    // Far above what a test takes: the machine may be slow, and no test is about time.
    testTimeout: 180_000,
    expect: { poll: { timeout: 30_000 } },
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
  },
});
