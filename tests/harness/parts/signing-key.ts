import { generateSigningKeyPem } from 'clerk-emulator';

/** One for all instances that tests of one worker start: to make one takes up to some seconds of processor time. */
export const SIGNING_KEY_PEM = generateSigningKeyPem();
