import { describe, expect, test } from 'vitest';
import { startStubServer } from '../harness/dependencies/stub-server';
import { send } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const INSTANCE = { test: 'https://tests.clerk.accounts.dev', live: 'https://clerk.tests.example' } as const;

const backendApi = stopAfterAll(await startStubServer());

describe.each(['test', 'live'] as const)('A production service with %s keys', async (keys) => {
  const environment = {
    CLERK_FAPI_URL: '',
    CLERK_API_URL: backendApi.url,
    // Only the local stack needs this variable. An operator may have set it by mistake. It must have no effect.
    IDP_CONSOLE_URL: 'http://127.0.0.1:3900',
  };
  const service = stopAfterAll(await startTestService({ keys, environment }));

  test(`A service with ${keys} keys recommends IDP_AUTHORIZED_PARTIES only if its keys are live keys`, () => {
    expect(service.linesWith('IDP_AUTHORIZED_PARTIES is not set')).toHaveLength(keys === 'live' ? 1 : 0);
  });

  test(`A service with ${keys} keys proxies no request, and its pages load the browser SDK from the Clerk instance`, async () => {
    for (const path of ['/__clerk', '/__clerk/v1/environment', '/__clerk/npm/@clerk/clerk-js']) {
      expect((await send(`${service.url}${path}`)).status).toBe(404);
    }
    const { body, headers } = await send(`${service.url}/sign-in`);
    expect(String(body)).toContain(`src="${INSTANCE[keys]}/npm/@clerk/clerk-js`);
    expect(String(body)).not.toMatch(/127\.0\.0\.1|\/__clerk/);
    expect(headers.get('content-security-policy')).toContain(`connect-src 'self' ${INSTANCE[keys]} `);
  });
});
