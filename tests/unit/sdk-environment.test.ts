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
  ];
  for (const name of foreign) vi.stubEnv(name, 'foreign');
  vi.stubEnv('IDP_SECRET_KEY', ' sk_test_new ');
  vi.stubEnv('IDP_PUBLISHABLE_KEY', '');
  vi.stubEnv('CLERK_API_URL', 'http://127.0.0.1:4000');
  vi.resetModules();
  await import('#lib/idp/sdk-environment');
  const seen = Object.entries(process.env).filter(([name]) => /^(?:NEXT_PUBLIC_)?CLERK_/.test(name));
  expect(Object.fromEntries(seen)).toEqual({
    CLERK_SECRET_KEY: 'sk_test_new',
    CLERK_API_URL: 'http://127.0.0.1:4000',
    CLERK_DISABLE_AUTO_PROXY: '1',
    NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED: '1',
  });
});
