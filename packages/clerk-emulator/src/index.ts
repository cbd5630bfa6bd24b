/** Public API of the package. */
export { prefetchClerkJs } from './clerk-js';
export { type Emulator, type EmulatorOptions, type SentResponse, startEmulator } from './emulator';
export type { Clock } from './instance/clock';
export type { Session, User } from './instance/data';
export { newId } from './instance/ids';
export { generateSigningKeyPem, type SigningKey, signingKey } from './instance/tokens';
