import { type Emulator, type EmulatorOptions, startEmulator } from 'clerk-emulator';
import { clerkJsFolder } from '../../dev/stack/settings';
import { SIGNING_KEY_PEM } from './dependencies/signing-key';
import { PUBLISHABLE_KEY, SECRET_KEY } from './keys';

/**
 * Starts an emulator of the identity provider with the test keys. By default, the emulator emulates a development instance of
 * Clerk and has no webhook endpoint.
 */
export function startProvider(options: Partial<EmulatorOptions> = {}): Promise<Emulator> {
  return startEmulator({
    publishableKey: PUBLISHABLE_KEY,
    secretKey: SECRET_KEY,
    signingKeyPem: SIGNING_KEY_PEM,
    clerkJsFolder,
    ...options,
  });
}
