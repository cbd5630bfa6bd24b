import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { checkProvider } from '#lib/doctor/provider';
import { PUBLISHABLE_KEY, SECRET_KEY } from '../harness/keys';

// The doctor is the command that checks the configuration of a deployment (`npm run doctor`).

const keyOf = (kid: string) => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { jwk: { ...publicKey.export({ format: 'jwk' }), kid }, pem: pemOf(publicKey) };
};
const pemOf = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString();
const own = keyOf('own');
const newer = keyOf('newer');
const foreign = keyOf('foreign');

const keySet = (...keys: { jwk: object }[]) => Response.json({ keys: keys.map(({ jwk }) => jwk) });
/** Responses of the Backend API (`secret`) and the Frontend API (`publishable`) to a request for the JWT keys. */
let respond: Record<'secret' | 'publishable', () => Response | Promise<Response>>;

beforeEach(() => {
  vi.stubEnv('IDP_SECRET_KEY', SECRET_KEY);
  vi.stubEnv('IDP_PUBLISHABLE_KEY', PUBLISHABLE_KEY);
  vi.stubEnv('IDP_JWT_KEY', own.pem);
  respond = { secret: () => keySet(newer, own), publishable: () => keySet(foreign, own) };
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (url) =>
    respond[String(url).startsWith('https://api.clerk.com/') ? 'secret' : 'publishable'](),
  );
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const OK = [
  { name: 'secret key', status: 'ok', message: 'the Backend API accepts it' },
  { name: 'publishable key', status: 'ok', message: 'its instance responds' },
  { name: 'both keys', status: 'ok', message: 'both keys belong to the same instance' },
  { name: 'JWT key', status: 'ok', message: 'IDP_JWT_KEY is a key of the instance' },
];
const KEYS_SKIPPED = {
  name: 'both keys',
  status: 'skipped',
  message: 'at least one of the two keys did not pass its own check',
};

test('The doctor finds no problem if all keys belong to one instance', async () => {
  const timeout = vi.spyOn(AbortSignal, 'timeout');
  expect(await checkProvider()).toEqual(OK);
  // The timeout of a request is below the timeout of a check, which is 5 s.
  expect(timeout.mock.calls).toEqual([[4_500], [4_500]]);
});

test('The doctor reports that the secret key and the publishable key belong to different instances if the Backend API and the Frontend API return no common JWT key', async () => {
  respond.publishable = () => keySet(foreign);
  expect((await checkProvider())[2]).toEqual({
    name: 'both keys',
    status: 'failure',
    message: 'IDP_SECRET_KEY and IDP_PUBLISHABLE_KEY belong to different instances',
    remedy: 'Copy both keys from the page of one instance in the dashboard',
  });
});

test('If the provider rejects the secret key, the doctor reports a failure and compares the JWT key with the keys of the Frontend API', async () => {
  respond.secret = () => new Response('', { status: 401 });
  const failed = {
    name: 'secret key',
    status: 'failure',
    message: 'the identity provider rejects IDP_SECRET_KEY: it was revoked, or its instance was deleted',
    remedy: 'Copy the secret key from the dashboard again',
  };
  expect(await checkProvider()).toEqual([failed, OK[1], KEYS_SKIPPED, OK[3]]);
});

test('If both APIs return an error, the doctor reports both errors and skips the check of the JWT key', async () => {
  respond = {
    secret: () => new Response('', { status: 503 }),
    publishable: () => new Response('', { status: 404 }),
  };
  expect(await checkProvider()).toEqual([
    {
      name: 'secret key',
      status: 'failure',
      message: 'the identity provider responds with status 503 (Backend API)',
      remedy:
        "Allow https requests from this machine to the Backend API, and look at the provider's status page",
    },
    {
      name: 'publishable key',
      status: 'failure',
      message: "the instance's Frontend API responds with status 404",
      remedy:
        'Copy the publishable key from the dashboard again. A production instance also needs its DNS records',
    },
    KEYS_SKIPPED,
    {
      name: 'JWT key',
      status: 'skipped',
      message: 'the secret key and the publishable key were not verified',
    },
  ]);
});

test('The doctor reports a JWT key that is not a key of the instance', async () => {
  vi.stubEnv('IDP_JWT_KEY', foreign.pem);
  expect((await checkProvider())[3]).toEqual({
    name: 'JWT key',
    status: 'failure',
    message: 'IDP_JWT_KEY is not a key of the instance: the service rejects every session',
    remedy: 'Copy the JWT public key of the instance from the dashboard, or unset IDP_JWT_KEY',
  });
});

test.each([
  ['IDP_JWT_KEY is invalid', 'invalid'],
  ['IDP_JWT_KEY is not set', undefined],
])('The doctor does not check the JWT key if %s', async (message, value) => {
  vi.stubEnv('IDP_JWT_KEY', value);
  expect((await checkProvider())[3]).toEqual({ name: 'JWT key', status: 'skipped', message });
});

test('The doctor makes no request with an invalid key', async () => {
  vi.stubEnv('IDP_SECRET_KEY', 'invalid');
  vi.stubEnv('IDP_PUBLISHABLE_KEY', 'invalid');
  expect(await checkProvider()).toEqual([
    { name: 'secret key', status: 'skipped', message: 'IDP_SECRET_KEY is invalid' },
    { name: 'publishable key', status: 'skipped', message: 'IDP_PUBLISHABLE_KEY is invalid' },
    KEYS_SKIPPED,
    {
      name: 'JWT key',
      status: 'skipped',
      message: 'the secret key and the publishable key were not verified',
    },
  ]);
  expect(fetch).not.toHaveBeenCalled();
});
