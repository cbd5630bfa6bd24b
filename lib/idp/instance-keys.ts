import { createPublicKey } from 'node:crypto';
import * as z from 'zod/mini';
import { PassingFault } from '../concurrency/retry';
import { someVariables, variables } from '../env';
import { askBackendApi } from './backend-api';

/** A public key of an instance, as both of its APIs publish it. */
export interface InstanceKey {
  readonly kid: string;
  readonly n: string;
}

const Keys = z.object({ keys: z.array(z.object({ kid: z.string(), n: z.string() })) });

/** The keys of the instance that IDP_SECRET_KEY opens; throws as `askBackendApi` does. */
export async function keysOfSecretKey(milliseconds: number): Promise<readonly InstanceKey[]> {
  return (await askBackendApi(Keys, 'jwks', new URLSearchParams(), milliseconds)).keys;
}

/** The keys of the instance that IDP_PUBLISHABLE_KEY names. Where it does not answer so, that is a PassingFault. */
export async function keysOfPublishableKey(milliseconds: number): Promise<readonly InstanceKey[]> {
  const { IDP_PUBLISHABLE_KEY, CLERK_FAPI_URL } = someVariables(
    z.pick(variables, { IDP_PUBLISHABLE_KEY: true, CLERK_FAPI_URL: true }),
  );
  const address = `${(CLERK_FAPI_URL ?? IDP_PUBLISHABLE_KEY.frontendApi).replace(/\/$/, '')}/.well-known/jwks.json`;
  const unanswered = () => new PassingFault("the instance's Frontend API does not answer");
  const response = await fetch(address, {
    redirect: 'error',
    signal: AbortSignal.timeout(milliseconds),
  }).catch(() => Promise.reject(unanswered()));
  if (response.status !== 200)
    throw new PassingFault(`the instance's Frontend API answers with status ${response.status}`);
  const keys = Keys.safeParse(await response.json().catch(() => undefined));
  if (!keys.success) throw new PassingFault("the instance's Frontend API answers something else than keys");
  return keys.data.keys;
}

/** True if a public key in PEM is this one. */
export function isKey(pem: string, { n }: InstanceKey): boolean {
  return createPublicKey(pem).export({ format: 'jwk' }).n === n;
}
