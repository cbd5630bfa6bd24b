import { foreignKeys } from 'clerk-emulator/testing';
import { expect, onTestFinished, test } from 'vitest';
import { adjustableClock } from '../harness/dependencies/adjustable-clock';
import { bearer, cookie, send, tokenFor } from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

// A process of the service caches verified session tokens and cookies. These tests use the real SDK. They check that a cache
// entry is used only for the credential that was verified, and only until 5 s (the allowed clock skew) after the credential
// expires.
const clock = stopAfterAll(adjustableClock());
const service = stopAfterAll(await startTestService({ environment: clock.environment }));

/** Sends a request. Returns the identity-provider id in the response, or the status if the request is rejected. */
const userOf = async (headers: Record<string, string>, url = service.url) => {
  const { status, body } = await send(`${url}/users/v1/me`, { headers });
  return status === 200 ? Object(body).identityProviderUserId : status;
};

test('If requests alternate between two users and between bearer token and cookie, each request is attributed to the user of its token', async () => {
  const kinds = ['one', 'other'].flatMap((name) => {
    const token = tokenFor(service.idp, `user_${name}`);
    return [
      { user: `user_${name}`, headers: bearer(token) },
      { user: `user_${name}`, headers: cookie(token) },
    ];
  });
  for (let round = 0; round < 3; round += 1) {
    for (const { user, headers } of kinds) expect(await userOf(headers)).toBe(user);
  }
});

test('Each of many concurrent requests of 20 users is attributed to the user of its token', async () => {
  const tokens = Array.from({ length: 20 }, (_, index) => tokenFor(service.idp, `user_at_once_${index}`));
  const indexes = Array.from({ length: 200 }, (_, index) => index % tokens.length);
  const users = await Promise.all(indexes.map((index) => userOf(bearer(tokens[index] ?? ''))));
  expect(users).toEqual(indexes.map((index) => `user_at_once_${index}`));
});

test('A bearer token takes precedence over a cookie, even if the bearer token is invalid', async () => {
  const [one, other] = ['user_one', 'user_other'].map((user) => tokenFor(service.idp, user));
  for (let round = 0; round < 2; round += 1) {
    expect(await userOf({ ...cookie(one ?? ''), ...bearer(other ?? '') })).toBe('user_other');
    expect(await userOf({ ...cookie(one ?? ''), ...bearer('ak_0123') })).toBe(401);
    expect(await userOf(cookie(one ?? ''))).toBe('user_one');
  }
});

test.each([
  ['an OAuth token', 'user_oauth', { typ: 'at+jwt' }],
  ['a machine token', 'mch_machine', {}],
])(
  'A request with %s as bearer token or cookie gets a 401, even if the request is repeated',
  async (_what, sub, header) => {
    const token = tokenFor(service.idp, sub, {}, { header });
    for (const headers of [bearer(token), cookie(token), bearer(token), cookie(token)]) {
      expect(await userOf(headers)).toBe(401);
    }
  },
);

test('Forged SDK headers do not change the user of a request with a cached token, and do not authenticate a request without a token', async () => {
  const [own, others] = ['user_own', 'user_others'].map((user) => tokenFor(service.idp, user));
  const forged = {
    'x-clerk-auth-status': 'signed-in',
    'x-clerk-auth-token': others ?? '',
    'x-clerk-auth-signature': 'x',
    'x-middleware-override-headers': 'x-clerk-auth-token',
    'x-middleware-request-x-clerk-auth-token': others ?? '',
  };
  expect(await userOf(bearer(others ?? ''))).toBe('user_others');
  for (let round = 0; round < 2; round += 1) {
    expect(await userOf({ ...bearer(own ?? ''), ...forged })).toBe('user_own');
    expect(await userOf(forged)).toBe(401);
  }
});

test('A cached token gets a 401 once it has been expired for longer than the allowed clock skew of 5 s', async () => {
  const token = tokenFor(service.idp, 'user_expires', { exp: Math.floor(clock.now() / 1000) + 10 });
  for (const headers of [bearer(token), cookie(token)]) expect(await userOf(headers)).toBe('user_expires');
  // 16 s: 10 s until the token expires, 5 s of allowed clock skew, and 1 s more.
  clock.freeze(clock.now() + 16_000);
  try {
    for (const headers of [bearer(token), cookie(token)]) expect(await userOf(headers)).toBe(401);
  } finally {
    clock.unfreeze();
  }
});

test('After a change of IDP_JWT_KEY, a new process rejects a token that was signed with the previous key', async () => {
  const token = tokenFor(service.idp, 'user_rotated');
  expect(await userOf(bearer(token))).toBe('user_rotated');
  const { publicKey } = foreignKeys();
  const restarted = await startServiceProcess({ ...service.environment, IDP_JWT_KEY: publicKey });
  onTestFinished(restarted.stop);
  expect(await userOf(bearer(token), restarted.url)).toBe(401);
});
