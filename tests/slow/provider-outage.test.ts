import { expect, test } from 'vitest';
import { startTcpProxy } from '../harness/dependencies/tcp-proxy';
import { cookie, deliver, me, register, send, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/** Prints the origin of each HTTP request that the service sends. */
const PRINT_REQUESTS = `import { subscribe } from 'node:diagnostics_channel';
subscribe('undici:request:create', ({ request }) => process.stdout.write('request to ' + request.origin + '\\n'));`;

const provider = stopAfterAll(await startTcpProxy({ host: '127.0.0.1', port: 1 }));
const address = `http://127.0.0.1:${provider.port}`;
const service = stopAfterAll(
  await startTestService({
    environment: {
      CLERK_API_URL: address,
      CLERK_FAPI_URL: address,
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(PRINT_REQUESTS)}`,
    },
  }),
);

test('With IDP_JWT_KEY, the service works while the identity provider does not respond, and sends no request to it', async () => {
  await provider.treat('black-hole');
  const { url, idp, database } = service;
  const token = tokenFor(idp, 'user_request');

  expect((await me(url, token)).status).toBe(200);
  expect((await deliver(url, userCreated('user_webhook'))).status).toBe(200);
  const registered = await register(url, token, { identityProviderUserId: 'user_register' });
  expect(registered.status).toBe(201);
  const page = await send(`${url}/account`, { headers: { accept: 'text/html', ...cookie(token) } });
  expect(page.status).toBe(200);
  expect(await database.users()).toEqual(['user_register', 'user_request', 'user_webhook']);

  const expired = tokenFor(idp, 'user_request', { exp: 1_700_000_000 });
  expect((await me(url, expired)).status).toBe(401);
  expect(provider.connections).toBe(0);
  const { KV_REST_API_URL = '' } = service.environment;
  const requests = new Set(service.linesWith('request to '));
  expect(requests).toEqual(new Set([`request to ${new URL(KV_REST_API_URL).origin}`]));
});
