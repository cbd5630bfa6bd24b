import { generateSigningKeyPem } from 'clerk-emulator';

/** Signing key of all provider instances in one worker. Generating a key takes up to some seconds of processor time. */
export const SIGNING_KEY_PEM = generateSigningKeyPem();
