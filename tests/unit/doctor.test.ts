import { createServer } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { check, fail } from '#lib/base/check';
import { errorCode } from '#lib/base/errors';
import { checkDatabase } from '#lib/doctor/database';
import { checkDeployedService } from '#lib/doctor/deployed';
import { closeDatabase } from '#lib/storage/database';
import { listen } from '../../dev/system/listen';

// tests/slow/doctor.test.ts runs the checks against real services. Here are the results that only a stub can cause.

afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await closeDatabase();
});

test('A check that throws an unknown error fails, and its message does not contain the text of the error', async () => {
  const result = await check('a', () => Promise.reject(new TypeError('postgres://me:hidden@host')));
  const message = 'the check did not complete (TypeError)';
  expect(result).toMatchObject({ status: 'failure', message });
});

test.each([
  [Object.assign(new Error('hidden 7'), { code: 'E1' }), 'E1'],
  [new Error('failed', { cause: Object.assign(new Error('x'), { code: 'E1' }) }), 'E1'],
  [new Error('only words'), 'only words'],
  [new TypeError('hidden 7'), 'TypeError'],
  [new AggregateError([Object.assign(new Error('x'), { code: 'E1' }), new Error('y')]), 'E1'],
  [new AggregateError([], 'none'), 'none'],
  [new DOMException('hidden 7', 'TimeoutError'), 'timeout'],
])('An error is described without a secret: %s', (error, code) => {
  expect(errorCode(error)).toBe(code);
});

test('A check that needs a missing variable is skipped', async () => {
  vi.stubEnv('DATABASE_URL', '');
  const skipped = { status: 'skipped', message: 'DATABASE_URL is invalid' };
  expect((await checkDatabase(false))[0]).toMatchObject(skipped);
});

/** Returns the response of a PostgreSQL server that rejects a connection with this SQLSTATE. */
function rejection(sqlState: string): Buffer {
  const fields = Buffer.from(`SFATAL\0C${sqlState}\0Mme:hidden@\0\0`);
  const length = Buffer.alloc(4);
  length.writeInt32BE(fields.length + 4);
  return Buffer.concat([Buffer.from('E'), length, fields]);
}

test.each([
  ['28P01', rejection('28P01'), 'the database rejects the role or its password (28P01)'],
  ['3D000', rejection('3D000'), 'the database does not exist (3D000)'],
  ['53300', rejection('53300'), 'the database has no free connection (53300)'],
  ['57P03', rejection('57P03'), 'the database does not respond in time (57P03)'],
  ['XX000', rejection('XX000'), 'the database returns an error (XX000)'],
  ['08P01', rejection('08P01'), 'the pooler rejects the connection (08P01)'],
  ['no TLS', 'N', expect.stringMatching(/^cannot open a TLS connection to the database \(/)],
  ['no data', '', 'the database does not respond in time (Connection terminated unexpectedly)'],
])(
  'The doctor explains the response %s to a connection, and skips the other checks of the database',
  async (name, response, message) => {
    const server = createServer((socket) => socket.once('data', () => socket.end(response)));
    const sslmode = name === 'no TLS' ? '?sslmode=require' : '';
    vi.stubEnv('DATABASE_URL', `postgresql://me@127.0.0.1:${await listen(server)}/app${sslmode}`);
    const noConnection = { status: 'skipped', message: 'there is no database connection' };
    expect(await checkDatabase(true)).toMatchObject([
      { status: 'failure', message },
      noConnection,
      noConnection,
      noConnection,
      noConnection,
    ]);
    server.close();
  },
);

/** Codes from https://nodejs.org/api/tls.html, and the one for another host name. */
const CERTIFICATE_CODES = `UNABLE_TO_GET_CRL UNABLE_TO_VERIFY_LEAF_SIGNATURE DEPTH_ZERO_SELF_SIGNED_CERT INVALID_CA
  SELF_SIGNED_CERT_IN_CHAIN CERT_HAS_EXPIRED CRL_HAS_EXPIRED INVALID_PURPOSE PATH_LENGTH_EXCEEDED HOSTNAME_MISMATCH
  ERR_TLS_CERT_ALTNAME_INVALID`;
test.each(CERTIFICATE_CODES.split(/\s+/))(
  'If a check fails because of the certificate error %s, the doctor names NODE_EXTRA_CA_CERTS',
  async (code) => {
    const remedy = expect.stringContaining('NODE_EXTRA_CA_CERTS');
    expect(await check('a', () => fail(`no connection (${code})`, 'other'))).toMatchObject({ remedy });
  },
);

const html = { 'content-type': 'text/html; charset=utf-8' };
test.each([
  [
    new Response(null, { status: 307, headers: { location: 'https://vercel.com/sso-api?url=hidden' } }),
    'the response is a redirect to vercel.com (307, no content type)',
  ],
  [
    new Response(null, { status: 308, headers: { location: '/hidden' } }),
    'the response is a redirect to another path (308, no content type)',
  ],
  [
    new Response('<html>', { status: 401, headers: html }),
    'deployment protection or a login in front of the service responds (401, text/html)',
  ],
  [
    new Response('Internal Server Error', { status: 500 }),
    'the service or its platform fails before a route responds (500, text/plain)',
  ],
  [
    new Response('[]', { headers: { 'content-type': 'application/json' } }),
    'another server responds (200, application/json)',
  ],
  [Response.json({ status: 'unknown' }), 'GET /health/alive gets a 200 with an unexpected body'],
  [Response.json({ message: 'no' }, { status: 500 }), 'GET /health/alive gets a 500 instead of a 200'],
])(
  'The doctor tells the cause of a response that the service does not send: $1',
  async (response, message) => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => response.clone());
    const [first, ...others] = await checkDeployedService('https://app.example.com');
    expect(first).toMatchObject({
      status: 'failure',
      message,
      remedy: expect.stringMatching(/^(?!.*hidden)/),
    });
    expect(new Set(others.map(({ status }) => status))).toEqual(new Set(['skipped']));
  },
);
