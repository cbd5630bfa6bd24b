import { defineConfig } from 'vitest/config';

const setupFiles = ['tests/vitest/end-with-vitest.ts', 'tests/vitest/no-console-errors.ts'];

const whole = {
  setupFiles,
  pool: 'forks',
  // Far above what a test takes: the machine may be slow, and no test is about time.
  testTimeout: 180_000,
  expect: { poll: { timeout: 30_000 } },
  hookTimeout: 180_000,
  teardownTimeout: 30_000,
} as const;

export default defineConfig({
  test: {
    globalSetup: ['tests/vitest/global-setup.ts'],
    maxWorkers: 2,
    projects: [
      { test: { name: 'unit', setupFiles, include: ['tests/unit/**/*.test.ts'] } },
      { test: { name: 'integration', ...whole, include: ['tests/{service,stack}/**/*.test.ts'] } },
      { test: { name: 'e2e', ...whole, include: ['tests/e2e/**/*.test.ts'] } },
    ],
  },
});
