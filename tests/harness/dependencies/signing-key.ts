import { generateSigningKeyPem } from 'clerk-emulator';

/** Signing key that all emulators in one test worker share, because the generation of a key can take several seconds. */
export const SIGNING_KEY_PEM = generateSigningKeyPem();
