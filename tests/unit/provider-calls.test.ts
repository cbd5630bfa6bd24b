import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { TransientError } from '#lib/concurrency/retry';
import { countUsers, SECRET_KEY_REJECTED } from '#lib/idp/backend-api';
import { isKey, keysOfPublishableKey, keysOfSecretKey } from '#lib/idp/instance-keys';
import { BUILD_TIME_VALUES } from '../harness/build';

beforeEach(() => {
  for (const [name, value] of Object.entries(BUILD_TIME_VALUES)) vi.stubEnv(name, value);
});

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Makes every call of the provider return this response. */
const respond = (body: unknown, status = 200) =>
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json(body, { status }));

const { publicKey: rsa } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const { publicKey: ec } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const { publicKey: ed25519 } = generateKeyPairSync('ed25519');
const jwk = (key: KeyObject) => key.export({ format: 'jwk' });
const pem = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString();

test.each([
  ['Backend API', keysOfSecretKey],
  ['Frontend API', keysOfPublishableKey],
])('Only the RSA keys of an instance are read from its %s', async (_api, keysOf) => {
  respond({
    keys: [
      { ...jwk(ec), kid: 'ec' },
      { ...jwk(rsa), kid: 'rsa', use: 'sig', alg: 'RS256' },
      { ...jwk(ed25519), kid: 'ed25519' },
    ],
  });
  const keys = await keysOf(1_000);
  expect(keys.map(({ kid }) => kid)).toEqual(['rsa']);
  expect(keys.some((key) => isKey(pem(rsa), key))).toBe(true);
});

test.each([[{}], [{ keys: 'none' }], [{ keys: [{ kid: 'ins_1' }] }]])(
  'A response that is not a key set is an error: %j',
  async (body) => {
    respond(body);
    await expect(keysOfSecretKey(1_000)).rejects.toThrow('returns an unexpected response');
    await expect(keysOfPublishableKey(1_000)).rejects.toThrow('does not return a key set');
  },
);

test('Only a 401 means that the provider rejects the secret key', async () => {
  respond({ errors: [{ code: 'clerk_key_invalid' }] }, 401);
  await expect(countUsers()).rejects.toThrow(SECRET_KEY_REJECTED);
});

test.each([
  [{ errors: [{ code: 'feature_not_enabled' }] }, ' (feature_not_enabled)'],
  [{ errors: [{ code: 'not a code, but text' }] }, ''],
  ['<html>', ''],
])('A 403 is not retried, and its error names the status and the code: %j', async (body, code) => {
  respond(body, 403);
  const error = await countUsers().catch((thrown: unknown) => thrown);
  expect(error).not.toBeInstanceOf(TransientError);
  expect(error).toEqual(new Error(`The identity provider forbids this request with status 403${code}`));
});
