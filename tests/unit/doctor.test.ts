import { generateKeyPairSync } from 'node:crypto';
import { afterEach, expect, test, vi } from 'vitest';
import { TransientError } from '#lib/concurrency/retry';
import { check, errorCode, medianDuration, settle } from '#lib/doctor/check';
import { judgeQueryLimit, judgeTransport } from '#lib/doctor/deployed';
import { runChecks } from '#lib/doctor/run-checks';
import { checkVariables, ENV_GROUPS, tryParse } from '#lib/doctor/variables';
import { BUILD_TIME_VALUES } from '../harness/build';

vi.mock('#lib/doctor/provider', () => ({ checkProvider: async () => [{ name: 'provider' }] }));
vi.mock('#lib/doctor/cache', () => ({ checkCache: async () => [{ name: 'cache' }] }));
vi.mock('#lib/doctor/database', () => ({
  checkDatabase: async (options: object) => [{ name: 'database', ...options }],
}));
vi.mock('#lib/doctor/deployed', async (original) => ({
  ...(await original<typeof import('#lib/doctor/deployed')>()),
  checkDeployedService: async (...args: unknown[]) => [{ name: 'service', args }],
}));

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

// The doctor is the command that checks the configuration of a deployment (`npm run doctor`).

/** Value of the header Strict-Transport-Security. */
const HEADER = 'max-age=31536000';
const secure = { status: 308, location: 'https://app.example.com/' };

test.each<[string, string, Parameters<typeof judgeTransport>[1], string]>([
  ['ok if http:// redirects to https:// and the header is present', HEADER, secure, 'ok'],
  ['ok if http:// does not respond and the header is present', HEADER, undefined, 'ok'],
  ['a warning if http:// responds with 200', HEADER, { status: 200, location: '' }, 'warning'],
  [
    'a warning if http:// redirects to http://',
    HEADER,
    { status: 302, location: 'http://www.example.com/' },
    'warning',
  ],
  ['a warning if the header is missing', '', secure, 'warning'],
  ['a warning if the header has max-age=0', 'max-age=0', secure, 'warning'],
  ['a warning if http:// responds with 200 and a location', HEADER, { ...secure, status: 200 }, 'warning'],
  ['a warning if http:// responds with 400 and a location', HEADER, { ...secure, status: 400 }, 'warning'],
  ['ok if http:// redirects with 300', HEADER, { ...secure, status: 300 }, 'ok'],
])(
  'When the doctor checks the redirect to https:// and the header Strict-Transport-Security, the result is %s',
  (_case, strictTransport, plain, status) => {
    expect(judgeTransport(strictTransport, plain).status).toBe(status);
  },
);

test.each([
  [400, { message: 'Bad request' }, 'the service rejects 101 query parameters (400)'],
  [400, undefined, 'a layer in front of the service rejects 101 query parameters (400)'],
  [403, { message: 'Denied' }, 'a layer in front of the service rejects 101 query parameters (403)'],
])(
  'The doctor reports which layer rejects a request with too many query parameters: status %s, body %j',
  (status, body, message) => {
    expect(judgeQueryLimit({ status, body })).toEqual({ status: 'ok', message });
  },
);

test('The doctor reports a service that accepts a request with too many query parameters', () => {
  expect(judgeQueryLimit({ status: 399, body: { status: 'ok' } })).toEqual({
    status: 'failure',
    message: 'accepts 101 query parameters',
    remedy: 'Deploy the version of this checkout',
  });
});

test('The doctor reports a service that responds with 500 to a request with too many query parameters', () => {
  expect(judgeQueryLimit({ status: 500, body: undefined })).toEqual({
    status: 'failure',
    message: 'responds with 500 to 101 query parameters',
    remedy: "Look for the request in the deployment's log",
  });
});

const VALID = {
  ...BUILD_TIME_VALUES,
  IDP_WEBHOOK_SIGNING_SECRET: `whsec_${Buffer.from('a signing secret for tests only!').toString('base64')}`,
  IDP_JWT_KEY: generateKeyPairSync('rsa', { modulusLength: 2048 })
    .publicKey.export({ type: 'spki', format: 'pem' })
    .toString(),
  DATABASE_URL: 'postgresql://localhost/app',
  KV_REST_API_URL: 'https://kv.example',
  KV_REST_API_TOKEN: 'token',
};
const variables = (changes: Readonly<Record<string, string | undefined>> = {}) =>
  checkVariables({ ...VALID, ...changes, NODE_ENV: 'test' });

test('The doctor finds no problem in valid variables', () => {
  expect(variables()).toEqual([
    { name: 'variables', status: 'ok', message: 'all required variables are set and valid' },
  ]);
});

test('With live keys, the doctor warns if an optional variable that a deployment should have is not set', () => {
  const parties = {
    name: 'variables',
    status: 'warning',
    message:
      'IDP_AUTHORIZED_PARTIES is not set: the service accepts sessions of every subdomain of your domain',
    remedy: 'Set it to the origins of your frontends',
  };
  const live = {
    IDP_SECRET_KEY: 'sk_live_0123456789',
    IDP_PUBLISHABLE_KEY: VALID.IDP_PUBLISHABLE_KEY.replace('pk_test_', 'pk_live_'),
  };
  expect(variables({ ...live, IDP_JWT_KEY: undefined })).toEqual([
    {
      name: 'variables',
      status: 'warning',
      message: 'IDP_JWT_KEY is not set: the service fetches the keys from the provider',
      remedy: 'Set it to the JWT public key',
    },
    parties,
  ]);
  expect(variables(live)).toEqual([parties]);
  expect(variables({ ...live, IDP_AUTHORIZED_PARTIES: 'https://app.example.com' })).toMatchObject([
    { status: 'ok' },
  ]);
});

const DASHBOARD = "Copy it from the API keys page of the identity provider's dashboard";
test.each([
  ['IDP_SECRET_KEY', `${DASHBOARD}: the secret key of the same instance as the publishable key`],
  ['IDP_PUBLISHABLE_KEY', `${DASHBOARD}: the publishable key`],
  [
    'IDP_WEBHOOK_SIGNING_SECRET',
    "Copy the signing secret, including whsec_, from the webhook endpoint's page in the dashboard",
  ],
  [
    'IDP_JWT_KEY',
    `${DASHBOARD}: the JWT public key in PEM format, including its first and last line. Or unset IDP_JWT_KEY`,
  ],
  ['IDP_AUTHORIZED_PARTIES', 'List the origins of your frontends without a path: https://app.example.com'],
  ['DATABASE_URL', 'Set it to the connection string of your PostgreSQL database. A pooler is fine'],
  ['KV_REST_API_URL', "Set it to the https:// URL of the store's REST API, not to its redis:// URL"],
  ['KV_REST_API_TOKEN', 'Set it to the REST API token of the store. The token must have write access'],
  ['USER_ID_CACHE_TTL_SECONDS', 'Set a whole number of seconds, or unset it'],
  ['FORGOTTEN_USERS_DAYS', 'Set a whole number of days, or unset it'],
  ['CLERK_API_URL', 'Unset it: only the local stack uses it'],
])('The doctor has a remedy for an invalid value of %s, and does not print the value', (name, remedy) => {
  const [problem] = variables({ [name]: 'hidden value' });
  expect(problem).toEqual({
    ...{ name: 'variables', status: 'failure', remedy },
    message: expect.stringMatching(new RegExp(`^${name} (?!.*hidden)`)),
  });
});

test('checkVariables() passes through an error that is not about the variables', () => {
  const error = new Error('unexpected');
  const source = new Proxy<NodeJS.ProcessEnv>(
    { NODE_ENV: 'test' },
    {
      get() {
        throw error;
      },
    },
  );
  expect(() => checkVariables(source)).toThrow(error);
});

test('tryParse() returns the variables of a group, or undefined if one of them is invalid', () => {
  for (const [name, value] of Object.entries(VALID)) vi.stubEnv(name, value);
  for (const name of ['CLERK_API_URL', 'CLERK_FAPI_URL']) vi.stubEnv(name, 'http://127.0.0.1:4000');
  expect(Object.values(ENV_GROUPS).map((group) => Object.keys(Object(tryParse<unknown>(group))))).toEqual([
    ['IDP_SECRET_KEY', 'CLERK_API_URL'],
    ['IDP_PUBLISHABLE_KEY', 'CLERK_FAPI_URL'],
    ['IDP_JWT_KEY'],
    ['DATABASE_URL'],
    ['KV_REST_API_URL', 'KV_REST_API_TOKEN'],
    ['IDP_WEBHOOK_SIGNING_SECRET'],
  ]);
  vi.stubEnv('DATABASE_URL', 'mysql://localhost');
  expect(tryParse(ENV_GROUPS.database)).toBeUndefined();
});

const never = () => new Promise<never>(() => undefined);

test('settle() returns the value of the work, or the explanation of its error or of its timeout', async () => {
  const explain = (error: unknown) => ({ status: 'skipped' as const, message: errorCode(error) });
  expect(await settle(async () => 7, explain)).toEqual({ value: 7 });
  const failing = () => Promise.reject(Object.assign(new Error('x'), { code: 'E1' }));
  expect(await settle(failing, explain)).toEqual({ failed: { status: 'skipped', message: 'E1' } });
  expect(await settle(never, explain, 1)).toEqual({ failed: expect.objectContaining({ status: 'skipped' }) });
});

test('A check of the doctor that throws or takes too long is a failure', async () => {
  const broken = () => {
    throw Object.assign(new Error('hidden 7'), { code: 'E1' });
  };
  expect(await check('own', broken)).toEqual({
    name: 'own',
    status: 'failure',
    message: 'the check did not complete (E1)',
    remedy: 'Run the doctor again. If the check fails again, report a bug',
  });
  expect(await check('own', never, 1)).toMatchObject({ name: 'own', status: 'failure' });
  expect(await check('own', () => ({ status: 'ok', message: 'fine' }))).toEqual({
    ...{ name: 'own', status: 'ok', message: 'fine' },
  });
});

test('errorCode() returns the code of an error or of its cause. Without a code, it returns a message that consists only of words, because any other message may contain a secret. Otherwise, it returns the name of the error. For an AggregateError, it uses the first inner error', () => {
  const coded = Object.assign(new Error('hidden 7'), { code: 'E1' });
  expect(errorCode(coded)).toBe('E1');
  expect(errorCode(new TransientError('failed', undefined, { cause: coded }))).toBe('E1');
  expect(errorCode(new TransientError('failed', undefined, { cause: new Error('x') }))).toBe('failed');
  expect(errorCode(new TypeError('hidden 7'))).toBe('TypeError');
  expect(errorCode(new AggregateError([coded, new Error('y')]))).toBe('E1');
  expect(errorCode(new AggregateError([], 'none'))).toBe('none');
});

test('medianDuration() returns the median of the durations in whole milliseconds, and runs the work once per round', async () => {
  const durations = [30, 2.4, 1, 10, 20];
  let now = 100;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  let runs = 0;
  const work = async () => {
    now += durations[runs] ?? 0;
    runs += 1;
  };
  expect(await medianDuration(5, work)).toBe(10);
  expect(runs).toBe(5);
  [runs, durations[3]] = [0, 2.6];
  expect(await medianDuration(5, work)).toBe(3);
});

test('runChecks() checks the variables, the provider, the database and the cache, and, with an origin, also the deployed service', async () => {
  for (const [name, value] of Object.entries(VALID)) vi.stubEnv(name, value);
  const options = { isLocal: true, handlesEvents: false };
  const common = [
    { name: 'variables', status: 'ok', message: 'all required variables are set and valid' },
    { name: 'provider' },
    { name: 'database', isLocal: true, handlesEvents: false },
    { name: 'cache' },
  ];
  expect(await runChecks(options)).toEqual(common);
  const origin = 'https://app.example.com';
  expect(await runChecks({ ...options, origin })).toEqual([
    ...common,
    { name: 'service', args: [origin, true] },
  ]);
});
