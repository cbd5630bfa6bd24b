import { generateSigningKeyPem } from 'clerk-emulator';

/** Signing key of all provider instances in one worker. Generating a key can take several seconds of processor time. */
export const SIGNING_KEY_PEM = generateSigningKeyPem();
