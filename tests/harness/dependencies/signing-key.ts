import { generateSigningKeyPem } from 'clerk-emulator';

/** Signing key of all emulators in one test worker. They share it, because generating a key can take several seconds. */
export const SIGNING_KEY_PEM = generateSigningKeyPem();
