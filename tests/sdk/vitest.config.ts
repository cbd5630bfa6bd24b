import { defineConfig } from 'vitest/config';

const common = {
  pool: 'forks' as const,
  testTimeout: 60_000,
  // Makes Vitest load the modules of the SDK, because Node.js cannot load those that @clerk/nextjs provides for bundlers.
  server: { deps: { inline: [/@clerk\//] } },
};

/** `npm run check:sdk` installs a version of Clerk's SDK in a copy of the service and runs these Vitest projects there. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'contract', ...common, include: ['tests/sdk/contract/*.test.ts'] } },
      { test: { name: 'without-headers', ...common, include: ['tests/sdk/without-headers.test.ts'] } },
    ],
  },
});
