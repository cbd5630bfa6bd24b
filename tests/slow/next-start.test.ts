import { expect, test } from 'vitest';
import {
  bearer,
  deliver,
  ME,
  type ParsedResponse,
  register,
  send,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../harness/requests';
import { startDependencies, startServiceProcess } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

// Vercel runs only the middleware and the routes, without server.ts. So does `next start`.
const { environment, idp, database } = stopAfterAll(await startDependencies());
const program = ['node_modules/next/dist/bin/next', 'start', '-H', 'localhost'];
const { url } = stopAfterAll(await startServiceProcess(environment, undefined, program));

const token = tokenFor(idp, 'user_caller');
const getMe = (headers: Record<string, string>, path = ME) => send(`${url}${path}`, { headers });
const submit = (body: unknown) => register(url, token, body);
const longText = 'x'.repeat(256 * 1024);

test.each<[string, number, () => Promise<ParsedResponse>]>([
  ['a guarded request', 200, () => getMe(bearer(token))],
  ['a request without a credential', 401, () => getMe({})],
  ['a handshake', 401, () => getMe({ cookie: '__clerk_handshake=x' }, `${ME}?__clerk_handshake=x`)],
  [
    'a request that skips the middleware',
    401,
    () =>
      getMe({
        'x-middleware-subrequest': 'middleware:middleware:middleware:middleware:middleware',
        'x-clerk-auth-status': 'signed-in',
        'x-clerk-auth-token': token,
      }),
  ],
  ['another spelling of a path', 404, () => getMe(bearer(token), `${ME}/`)],
  ['the registration of a new user', 201, () => submit({ identityProviderUserId: 'user_new' })],
  ['a registration that is too large', 413, () => submit(longText)],
  ['a webhook', 200, () => deliver(url, userCreated('user_hooked'))],
  ['a webhook of another body', 400, () => deliver(url, userCreated('user_else'), signatureHeaders('{}'))],
  ['a webhook that is too large', 413, () => deliver(url, `${longText}x`)],
])('Without server.ts, the response is the same as with it: %s (%i)', async (_what, status, respond) => {
  const response = await respond();
  expect(response.status).toBe(status);
  expect(response.headers.get('content-type')).toBe('application/json');
});

test('Without server.ts, a registration and a webhook link one user each', async () => {
  expect(await database.users()).toEqual(['user_caller', 'user_hooked', 'user_new']);
});
