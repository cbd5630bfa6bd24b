/** Public API of the package. */
export { prefetchClerkJs } from './clerk-js';
export { type Emulator, type EmulatorOptions, startEmulator } from './emulator';
export type { Clock } from './instance/clock';
export type { Organization, Session, User } from './instance/data';
export type { Failure, Failures, PendingFailure } from './instance/failures';
export { newId } from './instance/ids';
export { generateSigningKeyPem, type SigningKey, signingKey } from './instance/jwt';
export type { Settings } from './instance/settings';
export { Seed } from './seed';
