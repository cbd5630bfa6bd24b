import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { decodeSigningSecret, verifyWebhookSignature } from '#lib/crypto/webhook-signature';
import { checkDeployedService } from '#lib/doctor/deployed';
import { SIGNING_SECRET } from '../harness/keys';

// The doctor is the command that checks the configuration of a deployment (`npm run doctor`). Here, it checks a service whose
// responses the tests replace.

// A pause takes no time. It only advances the clock of the process.
vi.mock('node:timers/promises', async (original) => ({
  ...(await original<typeof import('node:timers/promises')>()),
  setTimeout: async (milliseconds: number) => vi.advanceTimersByTime(milliseconds),
}));

const ORIGIN = 'https://app.example.com';
const OTHER_SECRET = `whsec_${Buffer.from('the signing secret of another endpoint').toString('base64')}`;

interface Call {
  readonly url: URL;
  readonly init: RequestInit;
}
const calls: Call[] = [];
/** Responses by path. The path of an unencrypted request has the prefix `http:`. */
let respond: Record<string, (call: Call) => Response | Promise<Response>>;
/** Signing secrets of the service. */
let secrets: string[];

function receive({ init }: Call): Response {
  const keys = secrets.map(decodeSigningSecret);
  const isSigned = verifyWebhookSignature(String(init.body), new Headers(init.headers), keys) !== undefined;
  return isSigned
    ? Response.json({ received: true, eventType: JSON.parse(String(init.body)).type })
    : Response.json({ message: 'Invalid webhook signature' }, { status: 400 });
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  vi.stubEnv('IDP_WEBHOOK_SIGNING_SECRET', SIGNING_SECRET);
  calls.length = 0;
  secrets = [SIGNING_SECRET];
  const secure = { 'strict-transport-security': 'max-age=63072000' };
  respond = {
    '/health/alive': ({ url }) =>
      url.search === ''
        ? Response.json({ status: 'ok' }, { headers: secure })
        : Response.json({ message: 'Bad request' }, { status: 400 }),
    'http:/health/alive': () => Response.redirect(`${ORIGIN}/health/alive`, 308),
    '/health/ready': () => Response.json({ status: 'ok' }),
    '/users/v1/me': () => Response.json({ message: 'Unauthorized' }, { status: 401 }),
    '/users/v1/no-such-path': () => Response.json({ message: 'Not found' }, { status: 404 }),
    '/webhooks/idp/v1/user-created': receive,
  };
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init = {}) => {
    const url = new URL(String(input));
    const call = { url, init };
    calls.push(call);
    const response = respond[`${url.protocol === 'http:' ? 'http:' : ''}${url.pathname}`];
    if (response === undefined) throw new TypeError('There is no such path');
    return response(call);
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const ok = (name: string, message: string) => ({ name, status: 'ok', message });
const failure = (name: string, message: string, remedy: string) => ({
  name,
  status: 'failure',
  message,
  remedy,
});
const byName = async (name: string, origin = ORIGIN, isLocal = false) =>
  (await checkDeployedService(origin, isLocal)).find((result) => result.name === name);

test('The doctor finds no problem in a deployed service that responds as the contract requires, and creates no user', async () => {
  expect(await checkDeployedService(ORIGIN, false)).toEqual([
    ok('service', 'responds'),
    ok('service ready', 'ready'),
    ok('service guard', 'a request without a session gets a 401 in JSON'),
    ok('service webhook', 'the service acknowledges a signed test event'),
    ok('service forgery', 'the service rejects a forged event'),
    ok('service transport', 'http:// redirects to https://, and strict-transport-security is set'),
    ok('service unknown path', 'an unknown path gets a 404 in JSON'),
    ok('service headers', 'the response to a rejected session has no internal headers'),
    ok('service query limit', 'the service rejects 101 query parameters (400)'),
    ok('service latency', '0 ms from this machine, median of 5'),
  ]);
  for (const { init } of calls)
    expect(init).toMatchObject({ redirect: 'manual', signal: expect.any(AbortSignal) });
  const alive = calls.filter(({ url }) => url.href === `${ORIGIN}/health/alive`);
  expect(alive).toHaveLength(1 + 5);
  const guarded = calls.filter(({ url }) => url.pathname === '/users/v1/me').map(({ init }) => init.headers);
  expect(guarded).toEqual([undefined, { authorization: 'Bearer a.b.c' }]);
  const deliveries = calls.filter(({ url }) => url.pathname.startsWith('/webhooks'));
  for (const { init } of deliveries) {
    expect(init).toMatchObject({ method: 'POST' });
    expect(init.headers).toEqual({
      'content-type': 'application/json',
      'svix-id': expect.stringMatching(/^msg_doctor_[0-9a-f-]{36}$/),
      'svix-timestamp': expect.stringMatching(/^\d{10}$/),
      'svix-signature': expect.stringMatching(/^v1,/),
    });
  }
  expect(deliveries.map(({ init }) => JSON.parse(String(init.body)))).toEqual(
    ['signed', 'forged'].map((note) => ({ type: 'doctor.check', object: 'event', data: { note } })),
  );
  const query = calls.find(({ url }) => url.search !== '')?.url.search ?? '';
  expect(query).toMatch(/^\?p0=1&p1=1&.*&p99=1&p100=1$/);
  expect(query.split('&')).toHaveLength(101);
});

const CHECK_URL = 'Set --url to the public URL of the service, and check that the last deployment is running';
const html = () => new Response('<html>');
const NOT_JSON = 'Set --url to the URL of the service, and exclude its API paths from deployment protection';
const REDIRECT =
  'Set --url to the target of the redirect, or exclude the API paths from the redirect or login page in front of the service';
test.each<[string, () => Response | Promise<Response>, string, string]>([
  [
    'does not accept a connection',
    () => Promise.reject(Object.assign(new TypeError('failed'), { code: 'ECONNREFUSED' })),
    'cannot connect to the service (ECONNREFUSED)',
    CHECK_URL,
  ],
  [
    'does not respond in time',
    () => Promise.reject(new DOMException('hidden', 'TimeoutError')),
    'the service does not respond within 15 s',
    CHECK_URL,
  ],
  [
    'redirects',
    () => Response.redirect('https://login.example/', 307),
    'the response is a redirect (307)',
    REDIRECT,
  ],
  [
    'redirects with 300',
    () => Response.json({ status: 'ok' }, { status: 300 }),
    'the response is a redirect (300)',
    REDIRECT,
  ],
  [
    'responds with 400',
    () => Response.json({}, { status: 400 }),
    'GET /health/alive gets a 400 instead of a 200',
    CHECK_URL,
  ],
  ['sends a page', html, 'the response is not that of the service (200, not a JSON object)', NOT_JSON],
  [
    'sends a JSON text',
    () => Response.json('ok'),
    'the response is not that of the service (200, not a JSON object)',
    NOT_JSON,
  ],
  [
    'sends null',
    () => Response.json(null),
    'the response is not that of the service (200, not a JSON object)',
    NOT_JSON,
  ],
  // The doctor reads only the first 16 KiB. They are not a complete JSON object.
  [
    'sends more than 16 KiB',
    () => Response.json({ status: 'ok', more: 'x'.repeat(16 * 1_024) }),
    'the response is not that of the service (200, not a JSON object)',
    NOT_JSON,
  ],
  [
    'sends another body',
    () => Response.json({ status: 'fine' }),
    'GET /health/alive gets a 200 with an unexpected body',
    CHECK_URL,
  ],
  [
    'sends an invalid body',
    () => Response.json({ status: 7 }),
    'GET /health/alive gets a 200 with an unexpected body',
    CHECK_URL,
  ],
  [
    'responds with 201',
    () => Response.json({ status: 'ok' }, { status: 201 }),
    'GET /health/alive gets a 201 instead of a 200',
    CHECK_URL,
  ],
])(
  'The doctor reports a service that %s, and skips all other checks',
  async (_what, response, message, remedy) => {
    respond['/health/alive'] = response;
    const [service, ...others] = await checkDeployedService(ORIGIN, false);
    expect(service).toEqual(failure('service', message, remedy));
    expect(others.map(({ name: _name, ...result }) => result)).toEqual(
      Array.from({ length: 9 }, () => ({
        status: 'skipped',
        message: 'the first check of the service did not succeed',
      })),
    );
  },
);

test('The doctor waits up to 60 s for a response of the local stack, and up to 15 s for a response of another service', async () => {
  const timeout = vi.spyOn(AbortSignal, 'timeout');
  respond['/health/alive'] = () => Promise.reject(new DOMException('hidden', 'TimeoutError'));
  expect(await byName('service', 'http://localhost:3000', true)).toMatchObject({ status: 'failure' });
  respond['http:/health/alive'] = () => Promise.reject(new DOMException('hidden', 'TimeoutError'));
  expect(await byName('service', 'http://localhost:3000', true)).toEqual(
    failure('service', 'the service does not respond within 60 s', CHECK_URL),
  );
  await byName('service');
  expect(timeout.mock.calls.flat()).toEqual([60_000, 60_000, 15_000]);
});

const NOT_READY = 'Wait until the deployment is running, and run the doctor again';
test.each<[string, () => Response, object]>([
  [
    'its database is unavailable',
    () => Response.json({ errors: { database: 'unavailable' } }, { status: 503 }),
    {
      status: 'failure',
      message: 'the database of the service does not respond',
      remedy: 'Compare DATABASE_URL of the deployment with the value in this environment',
    },
  ],
  [
    'it shuts down',
    () => Response.json({ errors: { process: 'stopping' } }, { status: 503 }),
    { status: 'failure', message: 'not ready (503)', remedy: NOT_READY },
  ],
  [
    'the response names no error',
    () => Response.json({}, { status: 500 }),
    { status: 'failure', message: 'not ready (500)', remedy: NOT_READY },
  ],
  [
    'another server responds',
    html,
    {
      status: 'failure',
      message: 'the response is not that of the service (200, not a JSON object)',
      remedy: NOT_JSON,
    },
  ],
])('The doctor reports that the service is not ready if %s', async (_why, response, result) => {
  respond['/health/ready'] = response;
  expect(await byName('service ready')).toEqual({ name: 'service ready', ...result });
});

test('The doctor checks the readiness up to three times while the cache of the service does not respond, and then warns', async () => {
  let requests = 0;
  let degraded = 1;
  respond['/health/ready'] = () => {
    requests += 1;
    return Response.json({ status: requests <= degraded ? 'degraded' : 'ok' });
  };
  expect(await byName('service ready')).toEqual(ok('service ready', 'ready'));
  [requests, degraded] = [0, 100];
  expect(await byName('service ready')).toEqual({
    name: 'service ready',
    status: 'warning',
    message: 'ready, but the cache of the service does not respond',
    remedy:
      "Compare KV_REST_API_URL and KV_REST_API_TOKEN of the deployment with the values in the dashboard of the store's provider",
  });
  expect(requests).toBe(3);
});

test('The doctor reports the error of a later request, even if the first request succeeds', async () => {
  for (const path of ['/health/ready', '/users/v1/me'])
    respond[path] = () => Promise.reject(Object.assign(new TypeError('failed'), { code: 'ECONNRESET' }));
  const results = await checkDeployedService(ORIGIN, false);
  const message = 'cannot connect to the service (ECONNRESET)';
  for (const name of ['service ready', 'service guard', 'service headers'])
    expect(results).toContainEqual(failure(name, message, CHECK_URL));
});

const GUARD =
  'Check that no other server responds to API paths, and that the version of this checkout is deployed';
test.each<[string, () => Response, string, string]>([
  [
    '200',
    () => Response.json({ message: 'Unauthorized' }),
    'a request without a session gets a 200 instead of a 401',
    GUARD,
  ],
  [
    'a 401 with another message',
    () => Response.json({ message: 'Denied' }, { status: 401 }),
    'a request without a session gets a 401 with an unexpected body',
    GUARD,
  ],
  [
    'a redirect',
    () => Response.redirect('https://login.example/', 307),
    'the response is a redirect (307)',
    REDIRECT,
  ],
])(
  'The doctor reports that a request without a session gets %s',
  async (_what, response, message, remedy) => {
    respond['/users/v1/me'] = response;
    expect(await byName('service guard')).toEqual(failure('service guard', message, remedy));
  },
);

const SAME_SECRET =
  'Set IDP_WEBHOOK_SIGNING_SECRET of the deployment to the value in this environment, and deploy again. If the values are already equal, check the clock of this machine: the service rejects events whose time is more than 5 minutes off';
test('The doctor reports the signing secret that the service does not accept', async () => {
  secrets = [OTHER_SECRET];
  expect(await byName('service webhook')).toEqual(
    failure(
      'service webhook',
      'the service rejects an event that is signed with the signing secret of this environment',
      SAME_SECRET,
    ),
  );
  vi.stubEnv('IDP_WEBHOOK_SIGNING_SECRET', `${OTHER_SECRET} ${SIGNING_SECRET}`);
  expect(await byName('service webhook')).toEqual(
    failure(
      'service webhook',
      'the service rejects an event that is signed with signing secret 2 of 2',
      SAME_SECRET,
    ),
  );
});

const LOG = "Look for the request in the deployment's log";
test.each<[string, () => Response, string, string]>([
  ['an error', () => Response.json({}, { status: 500 }), 'a signed event gets a 500 instead of a 200', LOG],
  [
    'a 200 without an acknowledgment',
    () => Response.json({ received: false, eventType: 'doctor.check' }),
    'a signed event gets a 200 with an unexpected body',
    LOG,
  ],
  [
    'the acknowledgment of another event',
    () => Response.json({ received: true, eventType: 'other' }),
    'a signed event gets a 200 with an unexpected body',
    LOG,
  ],
  [
    'a 202',
    () => Response.json({ received: true, eventType: 'doctor.check' }, { status: 202 }),
    'a signed event gets a 202 instead of a 200',
    LOG,
  ],
  ['a page', html, 'the response is not that of the service (200, not a JSON object)', NOT_JSON],
])('The doctor reports that a signed event gets %s', async (_what, response, message, remedy) => {
  respond['/webhooks/idp/v1/user-created'] = response;
  expect(await byName('service webhook')).toEqual(failure('service webhook', message, remedy));
});

const FORGERY =
  'Take this URL out of service: either another application responds there, or any client may register users';
test.each<[string, () => Response, string, string]>([
  [
    'a 200',
    () => Response.json({ message: 'Invalid webhook signature' }),
    'a forged event gets a 200 instead of a 400',
    FORGERY,
  ],
  [
    'a 400 with another message',
    () => Response.json({ message: 'Bad request' }, { status: 400 }),
    'a forged event gets a 400 with an unexpected body',
    FORGERY,
  ],
  ['a page', html, 'the response is not that of the service (200, not a JSON object)', NOT_JSON],
])('The doctor reports that a forged event gets %s', async (_what, response, message, remedy) => {
  respond['/webhooks/idp/v1/user-created'] = response;
  expect(await byName('service forgery')).toEqual(failure('service forgery', message, remedy));
});

test('The doctor sends no event without a valid signing secret', async () => {
  vi.stubEnv('IDP_WEBHOOK_SIGNING_SECRET', 'invalid');
  const results = await checkDeployedService(ORIGIN, false);
  const message = 'IDP_WEBHOOK_SIGNING_SECRET is invalid';
  for (const name of ['service webhook', 'service forgery'])
    expect(results).toContainEqual({ name, status: 'skipped', message });
  expect(calls.filter(({ init }) => init.method === 'POST')).toEqual([]);
});

const PLATFORM = 'Configure the platform to redirect http:// to https://';
test('The doctor checks the redirect from http:// and the header Strict-Transport-Security of a service with https://', async () => {
  respond['http:/health/alive'] = () => Response.json({ status: 'ok' });
  expect(await byName('service transport')).toEqual({
    name: 'service transport',
    status: 'warning',
    message: 'http:// responds with 200 instead of a redirect to https://',
    remedy: PLATFORM,
  });
  respond['http:/health/alive'] = () => new Response('', { status: 308 });
  expect(await byName('service transport')).toMatchObject({
    message: 'http:// responds with 308 instead of a redirect to https://',
  });
  respond['http:/health/alive'] = () => Promise.reject(new TypeError('failed'));
  expect(await byName('service transport')).toEqual(ok('service transport', 'only https:// responds'));
  respond['/health/alive'] = () => Response.json({ status: 'ok' });
  expect(await byName('service transport')).toEqual({
    name: 'service transport',
    status: 'warning',
    message: 'no strict-transport-security header',
    remedy: 'Check that no proxy removes the header that next.config.ts sets',
  });
});

test('The doctor does not check the transport of a service without https://', async () => {
  for (const [path, response] of Object.entries(respond)) respond[`http:${path}`] ??= response;
  respond['http:/health/alive'] = () => Response.json({ status: 'ok' });
  expect(await byName('service transport', 'http://localhost:3000', true)).toEqual({
    name: 'service transport',
    status: 'skipped',
    message: 'the URL is not https://',
  });
});

test('The doctor reports an unknown path that does not get a 404 in JSON', async () => {
  respond['/users/v1/no-such-path'] = () => Response.json({});
  expect(await byName('service unknown path')).toEqual(
    failure(
      'service unknown path',
      'an unknown path gets a 200 instead of a 404',
      'Remove rewrites of API paths in front of the service',
    ),
  );
  respond['/users/v1/no-such-path'] = () => new Response('<html>', { status: 404 });
  expect(await byName('service unknown path')).toEqual(
    failure(
      'service unknown path',
      'the response is not that of the service (404, not a JSON object)',
      NOT_JSON,
    ),
  );
});

test('The doctor warns about headers that reveal internals of the service', async () => {
  respond['/users/v1/me'] = () =>
    Response.json(
      { message: 'Unauthorized' },
      {
        status: 401,
        headers: {
          'x-clerk-auth-status': 'signed-out',
          'x-middleware-next': '1',
          'x-nextjs-cache': 'HIT',
          'x-powered-by': 'Next.js',
          'x-powered-by-2': 'allowed',
          'my-x-clerk-id': 'allowed',
          'x-request-id': 'allowed',
        },
      },
    );
  expect(await byName('service headers')).toEqual({
    name: 'service headers',
    status: 'warning',
    message:
      'the response to a rejected session has internal headers: x-clerk-auth-status, x-middleware-next, x-nextjs-cache, x-powered-by',
    remedy:
      'Deploy the version of this checkout. If a proxy adds the headers, remove them there. If the headers remain, report a bug',
  });
});
