import { createClerkClient } from '@clerk/backend';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator';
import { generateSigningKeyPem } from '../../src/instance/jwt';
import { CLERK_JS_FOLDER } from './folders';
import { stopAfterTest } from './stop';

export const SECRET_KEY = 'sk_test_c2VjcmV0b2Z0aGVlbXVsYXRvcg';
export const SIGNING_SECRET = `whsec_${Buffer.from('a signing secret for tests only!').toString('base64')}`;
const PUBLISHABLE_KEY = `pk_test_${Buffer.from('tests.clerk.accounts.dev$').toString('base64')}`;

/** Shared by all emulators of a test file, because the generation of a key can take seconds. */
const SIGNING_KEY_PEM = generateSigningKeyPem();

/** Starts an emulator with the keys of the tests. By default, it is a development instance without a webhook endpoint. */
export function startProvider(options: Partial<EmulatorOptions> = {}): Promise<Emulator> {
  return startEmulator({
    publishableKey: PUBLISHABLE_KEY,
    secretKey: SECRET_KEY,
    signingKeyPem: SIGNING_KEY_PEM,
    clerkJsFolder: CLERK_JS_FOLDER,
    ...options,
  });
}

/** Starts an emulator that stops at the end of the current test. */
export const startForTest = async (options?: Partial<EmulatorOptions>) =>
  stopAfterTest(await startProvider(options));

/** Returns Clerk's Backend SDK for an emulator. */
export const clerkFor = ({ url }: Pick<Emulator, 'url'>, secretKey = SECRET_KEY) =>
  createClerkClient({ secretKey, apiUrl: url, telemetry: { disabled: true } });
