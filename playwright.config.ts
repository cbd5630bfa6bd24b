import { defineConfig } from 'playwright/test';
import type { WorkerOptions } from './tests/harness/browser/test';

/**
 * Configuration of the browser tests. Each worker starts a service with dependencies of its own (tests/harness/browser/test.ts).
 */
export default defineConfig<object, WorkerOptions>({
  testDir: 'tests/e2e',
  outputDir: '.local/playwright',
  globalSetup: ['tests/vitest/start-database.ts', 'tests/vitest/prepare-services.ts'],
  workers: 2,
  reporter: 'list',
  forbidOnly: true,
  // The timeouts (in milliseconds) only end tests that hang.
  timeout: 90_000,
  expect: { timeout: 30_000 },
  use: { actionTimeout: 60_000, contextOptions: { reducedMotion: 'reduce' }, trace: 'retain-on-failure' },
  projects: [
    { name: 'test-keys' },
    {
      name: 'live-keys',
      testMatch: ['sign-up.test.ts', 'handshake.test.ts'],
      use: { serviceOptions: { keys: 'live' } },
    },
  ],
});
