import { createPublicKey } from 'node:crypto';
import * as z from 'zod/mini';
import { type CheckResult, check, fail, skip, validVariables, warn } from '../base/check';
import { errorCode } from '../base/errors';
import { variables } from './variables';

const TIMEOUT_MS = 5_000;

/** A JSON Web Key Set (RFC 7517). `n` is the modulus of an RSA key. */
const KeySet = z.object({ keys: z.array(z.object({ kid: z.string(), n: z.optional(z.string()) })) });
type Keys = z.infer<typeof KeySet>['keys'];

/** Fetches the public keys of an instance. Fails if `api` does not return them. */
async function fetchKeys(
  api: string,
  url: string,
  remedy: string,
  headers: Readonly<Record<string, string>>,
): Promise<Keys> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(url, { headers, redirect: 'error', signal }).catch((error: unknown) =>
    fail(`the ${api} does not respond (${errorCode(error)})`, remedy),
  );
  if (response.status !== 200) fail(`the ${api} responds with status ${response.status}`, remedy);
  const keys = KeySet.safeParse(await response.json().catch(() => undefined));
  if (!keys.success) fail(`the ${api} does not return a key set`, remedy);
  return keys.data.keys;
}

const SecretKey = z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true });
const PublishableKey = z.pick(variables, { IDP_PUBLISHABLE_KEY: true, CLERK_FAPI_URL: true });

async function keysOfSecretKey(): Promise<Keys> {
  const { IDP_SECRET_KEY, CLERK_API_URL = 'https://api.clerk.com' } = validVariables(SecretKey);
  const remedy =
    'Copy the secret key from the dashboard again if the status is 401. Otherwise, allow https requests to the Backend API';
  return fetchKeys('Backend API', `${CLERK_API_URL.replace(/\/$/, '')}/v1/jwks`, remedy, {
    authorization: `Bearer ${IDP_SECRET_KEY}`,
  });
}

async function keysOfPublishableKey(): Promise<Keys> {
  const { IDP_PUBLISHABLE_KEY: key, CLERK_FAPI_URL = key.frontendApi } = validVariables(PublishableKey);
  const remedy =
    'Copy the publishable key from the dashboard again. A production instance also needs its DNS records';
  const url = `${CLERK_FAPI_URL.replace(/\/$/, '')}/.well-known/jwks.json`;
  return fetchKeys("instance's Frontend API", url, remedy, {});
}

/** Checks that the identity provider accepts the configured keys, and that all of them belong to one instance. */
export async function checkProvider(): Promise<CheckResult[]> {
  const [secret, publishable] = [keysOfSecretKey(), keysOfPublishableKey()];
  return Promise.all([
    check('secret key', () => secret.then(() => 'the Backend API accepts it')),
    check('publishable key', () => publishable.then(() => 'its instance responds')),
    check('both keys', async () => {
      const [one, other] = await Promise.all([secret, publishable]).catch(() =>
        skip('at least one of the two keys did not pass its own check'),
      );
      if (one.some(({ kid }) => other.some((key) => key.kid === kid)))
        return 'both keys belong to the same instance';
      fail(
        'IDP_SECRET_KEY and IDP_PUBLISHABLE_KEY belong to different instances',
        'Copy both keys from the page of one instance in the dashboard',
      );
    }),
    check('JWT key', async () => {
      const { IDP_JWT_KEY } = validVariables(z.pick(variables, { IDP_JWT_KEY: true }));
      if (IDP_JWT_KEY === undefined)
        warn('it is not set: the service fetches the keys from the provider', 'Set IDP_JWT_KEY to it');
      const keys = await secret
        .catch(() => publishable)
        .catch(() => skip('the secret key and the publishable key were not verified'));
      const { n } = createPublicKey(IDP_JWT_KEY).export({ format: 'jwk' });
      if (keys.some((key) => key.n === n)) return 'IDP_JWT_KEY is a key of the instance';
      fail(
        'IDP_JWT_KEY is not a key of the instance: the service rejects every session',
        'Copy the JWT public key of the instance from the dashboard, or unset IDP_JWT_KEY',
      );
    }),
  ]);
}
