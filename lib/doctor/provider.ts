import { SECRET_KEY_REJECTED } from '../idp/backend-api';
import { type InstanceKey, isKey, keysOfPublishableKey, keysOfSecretKey } from '../idp/instance-keys';
import {
  type CheckResult,
  check,
  errorCode,
  failure,
  type NamedCheck,
  ok,
  type Settled,
  settle,
  skipped,
  TIMEOUT_MS,
} from './check';
import { ENV_GROUPS, tryParse } from './variables';

type KeysResult = Settled<readonly InstanceKey[]>;

/**
 * Timeout of one call. It is shorter than the timeout of a check. Otherwise, the check would end before it can report that the
 * call timed out.
 */
const CALL_TIMEOUT_MS = TIMEOUT_MS - 500;

const messageOf = (error: unknown) => (error instanceof Error ? error.message : errorCode(error));

async function fetchKeysBySecretKey(): Promise<KeysResult> {
  if (!tryParse(ENV_GROUPS.secretKey)) return { failed: skipped('IDP_SECRET_KEY is invalid') };
  return settle(
    () => keysOfSecretKey(CALL_TIMEOUT_MS),
    (error) =>
      messageOf(error) === SECRET_KEY_REJECTED
        ? failure(
            'the identity provider rejects IDP_SECRET_KEY: it was revoked, or its instance was deleted',
            'Copy the secret key from the dashboard again',
          )
        : failure(
            `${messageOf(error)} (Backend API)`,
            "Allow https requests from this machine to the Backend API, and look at the provider's status page",
          ),
  );
}

async function fetchKeysByPublishableKey(): Promise<KeysResult> {
  if (!tryParse(ENV_GROUPS.publishableKey)) return { failed: skipped('IDP_PUBLISHABLE_KEY is invalid') };
  return settle(
    () => keysOfPublishableKey(CALL_TIMEOUT_MS),
    (error) =>
      failure(
        messageOf(error),
        'Copy the publishable key from the dashboard again. A production instance also needs its DNS records',
      ),
  );
}

const resultOf = (keys: KeysResult, message: string) => ('value' in keys ? ok(message) : keys.failed);

function checkBothKeys(secret: KeysResult, publishable: KeysResult): CheckResult {
  if (!('value' in secret && 'value' in publishable))
    return skipped('at least one of the two keys did not pass its own check');
  const kids = new Set(secret.value.map(({ kid }) => kid));
  return publishable.value.some(({ kid }) => kids.has(kid))
    ? ok('both keys belong to the same instance')
    : failure(
        'IDP_SECRET_KEY and IDP_PUBLISHABLE_KEY belong to different instances',
        'Copy both keys from the page of one instance in the dashboard',
      );
}

/**
 * Compares IDP_JWT_KEY with the public keys that were fetched with the secret key. If that fetch failed, uses the public keys
 * that were fetched with the publishable key.
 */
function checkJwtKey(secret: KeysResult, publishable: KeysResult): CheckResult {
  const variables = tryParse(ENV_GROUPS.jwtKey);
  if (!variables) return skipped('IDP_JWT_KEY is invalid');
  const pem = variables.IDP_JWT_KEY;
  if (pem === undefined) return skipped('IDP_JWT_KEY is not set');
  const keys = 'value' in secret ? secret : publishable;
  if (!('value' in keys)) return skipped('the secret key and the publishable key were not verified');
  return keys.value.some((key) => isKey(pem, key))
    ? ok('IDP_JWT_KEY is a key of the instance')
    : failure(
        'IDP_JWT_KEY is not a key of the instance: the service rejects every session',
        'Copy the JWT public key of the instance from the dashboard, or unset IDP_JWT_KEY',
      );
}

/** Checks that the identity provider accepts the configured keys, and that all of them belong to one instance. */
export async function checkProvider(): Promise<NamedCheck[]> {
  const [secret, publishable] = await Promise.all([fetchKeysBySecretKey(), fetchKeysByPublishableKey()]);
  return Promise.all([
    check('secret key', () => resultOf(secret, 'the Backend API accepts it')),
    check('publishable key', () => resultOf(publishable, 'its instance responds')),
    check('both keys', () => checkBothKeys(secret, publishable)),
    check('JWT key', () => checkJwtKey(secret, publishable)),
  ]);
}
