import {
  type IdentityProvider,
  type IdentityProviderOptions,
  startIdentityProvider,
} from '../../dev/idp/server';
import { checkResponse } from './clerk-schemas/checked-responses';
import { SIGNING_KEY_PEM } from './dependencies/signing-key';
import { PUBLISHABLE_KEY, SECRET_KEY } from './service';

/**
 * Starts an emulator with the keys of the tests, by default a development instance without a webhook endpoint. Its
 * responses are checked against the specification.
 */
export function startProvider(options: Partial<IdentityProviderOptions> = {}): Promise<IdentityProvider> {
  return startIdentityProvider({
    publishableKey: PUBLISHABLE_KEY,
    secretKey: SECRET_KEY,
    signingKeyPem: SIGNING_KEY_PEM,
    onResponse: checkResponse,
    ...options,
  });
}
