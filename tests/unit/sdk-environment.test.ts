import { afterEach, expect, test, vi } from 'vitest';

afterEach(() => {
  vi.unstubAllEnvs();
});

test("The provider's SDK gets the keys of the service and the addresses of the local stack, and no variable of another project", async () => {
  const foreign = [
    'NEXT_PUBLIC_CLERK_IS_SATELLITE',
    'CLERK_SECRET_KEY',
    'CLERK_JWT_KEY',
    'NEXT_PUBLIC_CLERK_DOMAIN',
    'CLERK_API_URL_OLD',
  ];
  for (const name of foreign) vi.stubEnv(name, 'foreign');
  vi.stubEnv('IDP_SECRET_KEY', ' sk_test_new ');
  vi.stubEnv('IDP_PUBLISHABLE_KEY', ' pk_test_new ');
  vi.stubEnv('MY_CLERK_KEY', 'kept');
  vi.stubEnv('CLERK_API_URL', 'http://127.0.0.1:4000');
  vi.resetModules();
  await import('#lib/clerk/sdk-environment');
  const seen = Object.entries(process.env).filter(([name]) => /CLERK_/.test(name));
  expect(Object.fromEntries(seen)).toEqual({
    CLERK_SECRET_KEY: 'sk_test_new',
    NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: 'pk_test_new',
    MY_CLERK_KEY: 'kept',
    CLERK_API_URL: 'http://127.0.0.1:4000',
    CLERK_DISABLE_AUTO_PROXY: '1',
    NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED: '1',
  });
});
