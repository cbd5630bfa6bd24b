import { generateSigningKeyPem } from 'clerk-emulator';

// The variable passes the key to the test workers, because the generation of a key can take several seconds.
const key = process.env['TESTS_SIGNING_KEY'] ?? generateSigningKeyPem();
process.env['TESTS_SIGNING_KEY'] = key;

/** Signing key of all emulators of a test run. */
export const SIGNING_KEY_PEM = key;
