import { foreignKeys, type Signing } from 'clerk-emulator/testing';
import { describe, expect, test } from 'vitest';
import { UNAUTHENTICATED_REASONS } from '#lib/errors/unauthenticated-reason';
import { bearer, cookie, ME, now, tokenFor } from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const FRONTEND = 'https://app.example.com';

const service = stopAfterAll(await startTestService({ environment: { IDP_AUTHORIZED_PARTIES: FRONTEND } }));
/** A process that fetches the keys of the identity provider, because IDP_JWT_KEY is empty. */
const fetchingKeys = stopAfterAll(await startServiceProcess({ ...service.environment, IDP_JWT_KEY: '' }));

const foreignKey = foreignKeys().privateKey;
const token = (claims: Record<string, unknown> = {}, signing: Signing = {}) =>
  tokenFor(service.idp, 'user_of_a_reason', { azp: FRONTEND, ...claims }, signing);
/** Returns the cookies of a session without the cookie `name`. */
const cookiesWithout = (name: string) => {
  const complete = cookie(token()).cookie;
  return { cookie: complete.replace(new RegExp(`${name}=[^;]*(?:; )?`), '') };
};

// A forgotten user is one that an operator has deleted with `npm run users -- forget`. A session token that was issued before the
// deletion does not create the user again. The deletion time below is one hour in the future, so every token of this file is
// older than the deletion.
const FORGOTTEN = 'user_who_is_forgotten';
await service.database.pool.query(
  `INSERT INTO forgotten_users VALUES (forgotten_user_hash($1), now() + interval '1 hour', now() + interval '1 day')`,
  [FORGOTTEN],
);

type Credential = () => Record<string, string>;
const cases: [reason: string, description: string, Credential][] = [
  ['no-credential', 'none', () => ({})],
  ['no-credential', 'a header with the scheme Basic', () => ({ authorization: 'Basic dXNlcjpwYXNz' })],
  ['no-credential', 'cookies without a session', () => ({ cookie: 'theme=dark; __client_uat=1' })],
  [
    'foreign-cookie',
    'session cookies in a request from another site',
    () => ({ ...cookie(token()), 'sec-fetch-site': 'cross-site' }),
  ],
  [
    'incomplete-cookies',
    'session cookies without __client_uat, the time of the sign-in',
    () => cookiesWithout('__client_uat'),
  ],
  ['malformed', 'a bearer that is not a token', () => bearer('hello')],
  ['malformed', 'an API key', () => bearer('ak_0123456789abcdef')],
  ['malformed', 'an OAuth token', () => bearer(token({}, { header: { typ: 'at+jwt' } }))],
  ['malformed', 'a token whose subject is a machine', () => bearer(token({ sub: 'mch_machine' }))],
  ['malformed', 'a token with the algorithm none', () => bearer(token({}, { header: { alg: 'none' } }))],
  ['malformed', 'a token with the algorithm HS256', () => bearer(token({}, { header: { alg: 'HS256' } }))],
  ['malformed', 'a token without sub', () => bearer(token({ sub: undefined }))],
  ['malformed', 'a token without sid', () => bearer(token({ sid: undefined }))],
  ['malformed', 'a cookie without sid', () => cookie(token({ sid: undefined }))],
  ['malformed', 'a token without exp', () => bearer(token({ exp: undefined }))],
  ['expired', 'an expired bearer token', () => bearer(token({ exp: now() - 6 }))],
  ['expired', 'an expired session cookie', () => cookie(token({ exp: now() - 6 }))],
  [
    'expired',
    'a session cookie that is older than the last sign-in',
    () => ({ cookie: cookie(token()).cookie.replace('uat=1', `uat=${now() + 60}`) }),
  ],
  ['not-yet-valid', 'a token whose nbf is in the future', () => bearer(token({ nbf: now() + 60 }))],
  ['not-yet-valid', 'a session cookie whose iat is in the future', () => cookie(token({ iat: now() + 60 }))],
  [
    'wrong-key',
    'a bearer token that was signed with another key',
    () => bearer(token({}, { privateKeyPem: foreignKey })),
  ],
  [
    'wrong-key',
    'a session cookie that was signed with another key',
    () => cookie(token({}, { privateKeyPem: foreignKey })),
  ],
  ['wrong-party', 'a token of another frontend', () => bearer(token({ azp: 'https://blog.example.com' }))],
  ['wrong-party', 'a token without azp', () => bearer(token({ azp: undefined }))],
  ['wrong-party', 'a session cookie without azp', () => cookie(token({ azp: undefined }))],
  ['pending-session', 'the bearer token of a pending session', () => bearer(token({ sts: 'pending' }))],
  ['pending-session', 'the cookie of a pending session', () => cookie(token({ sts: 'pending' }))],
  ['no-user-id', 'a token with an empty sub', () => bearer(token({ sub: '' }))],
  ['no-user-id', 'a token with a sub that is too long', () => bearer(token({ sub: 'u'.repeat(256) }))],
  ['forgotten', 'the bearer token of a forgotten user', () => bearer(token({ sub: FORGOTTEN }))],
  ['forgotten', 'the cookie of a forgotten user', () => cookie(token({ sub: FORGOTTEN }))],
];

let requests = 0;
/** Sends a request. Returns the response, and the log line of the request. */
async function sendRejected(url: string, output: () => string, headers: Record<string, string>) {
  requests += 1;
  const requestId = `reason-${requests}`;
  const response = await fetch(`${url}${ME}`, { headers: { ...headers, 'x-request-id': requestId } });
  const received = {
    status: response.status,
    headers: [...response.headers].filter(([name]) => name !== 'x-request-id' && name !== 'date'),
    body: await response.text(),
  };
  const lines = () =>
    output()
      .split('\n')
      .filter((line) => line.includes(`"${requestId}"`));
  await expect.poll(lines).toHaveLength(1);
  const line: Record<string, unknown> = JSON.parse(lines()[0] ?? '');
  return { received, line };
}

const processes = [
  { keys: 'given as a variable', at: service.processes[0] ?? fetchingKeys },
  { keys: 'fetched from the provider', at: fetchingKeys },
];

describe.each(processes)('Logged reasons of a 401 if the verification keys are $keys', ({ at }) => {
  test.each(cases)(
    'The log contains the reason %s for a request with this credential: %s',
    async (reason, _what, credential) => {
      // Sends the request twice, because the reason must not change after the first request to a process.
      for (const _time of [1, 2]) {
        const { line } = await sendRejected(at.url, at.output, credential());
        expect(line).toEqual({
          level: 'info',
          time: expect.any(String),
          requestId: expect.any(String),
          route: `GET ${ME}`,
          status: 401,
          ms: expect.any(Number),
          reason,
          msg: 'request',
        });
      }
    },
  );
});

test('The log contains the reason wrong-key for a token whose key id is unknown to the provider', async () => {
  const theirs = token({}, { header: { kid: 'theirs' } });
  const { line } = await sendRejected(fetchingKeys.url, fetchingKeys.output, bearer(theirs));
  expect(line).toMatchObject({ status: 401, reason: 'wrong-key' });
});

test('A caller cannot set the logged reason of a 401, and the response does not depend on the reason', async () => {
  const responses = new Set<string>();
  for (const [reason, , credential] of cases) {
    const headers = { ...credential(), 'x-clerk-auth-reason': 'expired', 'x-clerk-auth-message': 'expired' };
    const { received, line } = await sendRejected(service.url, service.output, headers);
    expect(line).toMatchObject({ status: 401, reason });
    responses.add(JSON.stringify(received));
  }
  expect([...responses]).toHaveLength(1);
});

test('Each reason of a 401 has a test', () => {
  const elsewhere = ['not-verified', 'no-auth-state']; // Tested in jwks-outage.test.ts and tests/unit/guard.test.ts.
  const provoked = new Set([...cases.map(([reason]) => reason), ...elsewhere]);
  expect([...provoked].toSorted()).toEqual(UNAUTHENTICATED_REASONS.toSorted());
});
