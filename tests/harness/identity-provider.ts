import { type Emulator, type EmulatorOptions, startEmulator } from 'clerk-emulator';
import { checkResponse } from 'clerk-emulator/testing';
import { clerkJsFolder } from '../../dev/stack/settings';
import { SIGNING_KEY_PEM } from './dependencies/signing-key';
import { PUBLISHABLE_KEY, SECRET_KEY } from './keys';

/**
 * Starts an emulator of the identity provider with the test keys. By default, the emulator emulates a development instance of
 * Clerk, has no webhook endpoint and checks each of its responses against Clerk's OpenAPI specification.
 */
export function startProvider(options: Partial<EmulatorOptions> = {}): Promise<Emulator> {
  return startEmulator({
    publishableKey: PUBLISHABLE_KEY,
    secretKey: SECRET_KEY,
    signingKeyPem: SIGNING_KEY_PEM,
    clerkJsFolder,
    onResponse: checkResponse,
    ...options,
  });
}
