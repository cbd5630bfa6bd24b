/** Helpers for tests that use the emulator. The package exports this module as `clerk-emulator/testing`. */
export { type ManualClock, manualClock } from './testing/manual-clock';
export { foreignKeys, type Signing, signToken } from './testing/tokens';
export { type EmulatorFixtures, emulatorFixtures, fixtures } from './testing/vitest';
