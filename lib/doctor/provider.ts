import { SECRET_KEY_REJECTED } from '../idp/backend-api';
import { type InstanceKey, isKey, keysOfPublishableKey, keysOfSecretKey } from '../idp/instance-keys';
import { attempt, BOUND_MS, check, codeOf, type Examined, type Finding, failure, ok, skipped } from './check';
import { PARTS, valid } from './variables';

type Asked = { readonly value: readonly InstanceKey[] } | { readonly fault: Finding };

/** Below the bound of the check, so that it is the call that ends, and says how. */
const CALL_MS = BOUND_MS - 500;

const words = (error: unknown) => (error instanceof Error ? error.message : codeOf(error));

async function askBySecretKey(): Promise<Asked> {
  if (!valid(PARTS.secretKey)) return { fault: skipped('IDP_SECRET_KEY is not valid') };
  return attempt(
    () => keysOfSecretKey(CALL_MS),
    (error) =>
      words(error) === SECRET_KEY_REJECTED
        ? failure(
            'the identity provider refuses it',
            'Copy the secret key anew from the dashboard; it was revoked, or is of a deleted instance',
          )
        : failure(
            `${words(error)} (Backend API)`,
            "Let this machine reach the Backend API over https; look at the provider's status page",
          ),
  );
}

async function askByPublishableKey(): Promise<Asked> {
  if (!valid(PARTS.publishableKey)) return { fault: skipped('IDP_PUBLISHABLE_KEY is not valid') };
  return attempt(
    () => keysOfPublishableKey(CALL_MS),
    (error) =>
      failure(
        words(error),
        'Copy the publishable key anew; for a production instance, set up its DNS records in the dashboard',
      ),
  );
}

const told = (asked: Asked, finding: string) => ('value' in asked ? ok(finding) : asked.fault);

function pairOf(secret: Asked, publishable: Asked): Finding {
  if (!('value' in secret && 'value' in publishable)) return skipped('one of the two does not answer');
  const kids = new Set(secret.value.map(({ kid }) => kid));
  return publishable.value.some(({ kid }) => kids.has(kid))
    ? ok('both are of one instance')
    : failure(
        'IDP_SECRET_KEY and IDP_PUBLISHABLE_KEY are of different instances',
        'Copy both keys from the same instance of the dashboard',
      );
}

/** The instance that verifies sessions is the secret key's; where that does not answer, the other one has to do. */
function jwtKeyOf(secret: Asked, publishable: Asked): Finding {
  const variables = valid(PARTS.jwtKey);
  if (!variables) return skipped('IDP_JWT_KEY is not valid');
  const pem = variables.IDP_JWT_KEY;
  if (pem === undefined) return skipped('IDP_JWT_KEY is not set');
  const asked = 'value' in secret ? secret : publishable;
  if (!('value' in asked)) return skipped('no instance answers');
  return asked.value.some((key) => isKey(pem, key))
    ? ok('is a key of the instance')
    : failure(
        'IDP_JWT_KEY is no key of the instance: every session is refused',
        'Copy the JWT public key of the same instance from the dashboard, or leave IDP_JWT_KEY unset',
      );
}

/** The keys of the identity provider: each of an instance that answers, and all of the same. */
export async function examineProvider(): Promise<Examined[]> {
  const [secret, publishable] = await Promise.all([askBySecretKey(), askByPublishableKey()]);
  return Promise.all([
    check('secret key', () => told(secret, 'the Backend API takes it')),
    check('publishable key', () => told(publishable, 'its instance answers')),
    check('both keys', () => pairOf(secret, publishable)),
    check('JWT key', () => jwtKeyOf(secret, publishable)),
  ]);
}
