import { createPublicKey } from 'node:crypto';
import * as z from 'zod/mini';
import { TransientError } from '../concurrency/retry';
import { parseEnvironmentSubset, variables } from '../env';
import { backendApiGet } from './backend-api';

/** An RSA public key of an instance of the provider: the key id (`kid`) and the modulus (`n`). */
export interface InstanceKey {
  readonly kid: string;
  readonly n: string;
}

const RsaKey = z.object({ kty: z.literal('RSA'), kid: z.string(), n: z.string() });

/** A JSON Web Key Set (RFC 7517). Keeps only the RSA keys, because the instance does not sign sessions with other keys. */
const Keys = z.object({
  keys: z.pipe(
    z.array(z.looseObject({ kty: z.string() })),
    z.transform((keys): InstanceKey[] => keys.flatMap((key) => RsaKey.safeParse(key).data ?? [])),
  ),
});

/** Returns the RSA keys of the instance that IDP_SECRET_KEY belongs to. Throws the errors of `backendApiGet`. */
export async function keysOfSecretKey(milliseconds: number): Promise<readonly InstanceKey[]> {
  return (await backendApiGet(Keys, 'jwks', new URLSearchParams(), milliseconds)).keys;
}

/**
 * Returns the RSA keys of the instance that IDP_PUBLISHABLE_KEY belongs to. Throws a TransientError if the Frontend API does
 * not return a key set.
 */
export async function keysOfPublishableKey(milliseconds: number): Promise<readonly InstanceKey[]> {
  const { IDP_PUBLISHABLE_KEY, CLERK_FAPI_URL } = parseEnvironmentSubset(
    z.pick(variables, { IDP_PUBLISHABLE_KEY: true, CLERK_FAPI_URL: true }),
  );
  const address = `${(CLERK_FAPI_URL ?? IDP_PUBLISHABLE_KEY.frontendApi).replace(/\/$/, '')}/.well-known/jwks.json`;
  const noResponse = () => new TransientError("the instance's Frontend API does not respond");
  const response = await fetch(address, {
    redirect: 'error',
    signal: AbortSignal.timeout(milliseconds),
  }).catch(() => Promise.reject(noResponse()));
  if (response.status !== 200)
    throw new TransientError(`the instance's Frontend API responds with status ${response.status}`);
  const keys = Keys.safeParse(await response.json().catch(() => undefined));
  if (!keys.success) throw new TransientError("the instance's Frontend API does not return a key set");
  return keys.data.keys;
}

/** Returns true if a public key in PEM format and an InstanceKey have the same modulus. */
export function isKey(pem: string, { n }: InstanceKey): boolean {
  return createPublicKey(pem).export({ format: 'jwk' }).n === n;
}
