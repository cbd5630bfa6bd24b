import {
  type IdentityProvider,
  type IdentityProviderOptions,
  startIdentityProvider,
} from '../../dev/idp/server';
import { SIGNING_KEY_PEM } from './parts/signing-key';
import { PUBLISHABLE_KEY, SECRET_KEY } from './service';

/** Starts a stand-in with the keys of the tests, one signing key for all: a development instance without an endpoint, unless told otherwise. */
export function startProvider(options: Partial<IdentityProviderOptions> = {}): Promise<IdentityProvider> {
  return startIdentityProvider({
    publishableKey: PUBLISHABLE_KEY,
    secretKey: SECRET_KEY,
    signingKeyPem: SIGNING_KEY_PEM,
    ...options,
  });
}
