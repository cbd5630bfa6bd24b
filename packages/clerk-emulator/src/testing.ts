import {
  createPrivateKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
} from 'node:crypto';
import { type Emulator, type EmulatorOptions, startEmulator } from './emulator';
import type { Clock } from './instance/clock';
import { signJwt } from './instance/jwt';

// Helpers for tests that use the emulator. The package exports this module as `clerk-emulator/testing`.

/** A clock whose timers fire only when a test advances it. */
export interface ManualClock extends Clock {
  /** Advances to the earliest timer that is at least `atLeast` ms away, runs only this one, and returns the elapsed time. */
  advance(atLeast?: number): number;
}

/** Returns a clock that starts at the current time and moves only when it is advanced. */
export function manualClock(): ManualClock {
  let time = Date.now();
  const pending = new Map<() => void, number>();
  return {
    now: () => time,
    after(milliseconds, callback) {
      pending.set(callback, time + milliseconds);
      return () => pending.delete(callback);
    },
    advance(atLeast = 0) {
      const start = time;
      const [next] = [...pending]
        .filter(([, at]) => at - start >= atLeast)
        .sort(([, one], [, other]) => one - other);
      if (next === undefined) throw new Error(`No timer is set for ${atLeast} ms from now or later.`);
      const [callback, at] = next;
      pending.delete(callback);
      time = at;
      callback();
      return at - start;
    },
  };
}

/** Overrides for the signature of a token: fields of its header, or another key. */
export interface Signing {
  readonly header?: Record<string, unknown>;
  readonly privateKeyPem?: string;
}

/** Generates a key pair in PEM. The emulator does not use this pair, so an application must reject tokens signed with it. */
export const foreignKeys = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });

/**
 * Returns a token with exactly these claims. The algorithm in the header determines the signature:
 * - `RS256`: signed with `privateKeyPem`. Default: the private key of the emulator.
 * - `none`: not signed.
 * - `HS256`: signed with the public key of the emulator as the secret (an algorithm confusion attack).
 *
 * Throws for any other algorithm.
 */
export function signToken(
  { signingKey }: Pick<Emulator, 'signingKey'>,
  claims: Record<string, unknown>,
  { header = {}, privateKeyPem }: Signing = {},
): string {
  const { alg = 'RS256' } = header;
  const sign = (privateKey: KeyObject, algorithm: 'HS256' | 'RS256') =>
    signJwt({ kid: signingKey.kid, privateKey }, claims, header, algorithm);
  if (alg === 'HS256') return sign(createSecretKey(signingKey.publicKeyPem, 'utf8'), alg);
  const token = sign(privateKeyPem ? createPrivateKey(privateKeyPem) : signingKey.privateKey, 'RS256');
  if (alg === 'RS256') return token;
  if (alg === 'none') return token.replace(/[^.]*$/, '');
  throw new Error(`Unsupported algorithm: ${alg}`);
}

/** The fixtures that `fixtures` adds to a test of Vitest. */
export interface EmulatorFixtures {
  /** An emulator for the tests of one file. */
  readonly emulator: Emulator;
  /**
   * Creates a user with a session, or only a session if `user` has the id and the address of a user, such as one of the seed. The
   * default e-mail address is unique. Throws if the address of a new user is taken.
   */
  signedInAs(user?: NewUser | Omit<TestUser, 'token'>): TestUser;
}

/** The fields of a new user. */
type NewUser = Partial<Parameters<Emulator['createUser']>[0]>;

interface TestUser {
  readonly id: string;
  readonly email: string;
  /** Session token for an `Authorization: Bearer` header. */
  readonly token: string;
}

/** A fixture of Vitest. It passes a value to the test and resolves after the test. */
type Fixture<Value, Required> = (required: Required, use: (value: Value) => Promise<void>) => Promise<void>;

/** Returns fixtures for `test.extend` of Vitest. `options` are those of the emulator, such as its seed. */
export const emulatorFixtures = (
  options: EmulatorOptions = {},
): {
  emulator: [Fixture<Emulator, object>, { scope: 'file' }];
  signedInAs: Fixture<EmulatorFixtures['signedInAs'], Pick<EmulatorFixtures, 'emulator'>>;
} => ({
  emulator: [
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of the required fixtures from the pattern.
    async ({}, use) => {
      const emulator = await startEmulator(options);
      await use(emulator).finally(() => emulator.stop());
    },
    { scope: 'file' },
  ],
  signedInAs: ({ emulator }, use) =>
    use((wanted = {}) => {
      const user =
        'id' in wanted
          ? wanted
          : emulator.createUser({ email: `user-${randomUUID()}@example.com`, ...wanted });
      const { id, email } = user;
      return { id, email, token: emulator.sessionToken(emulator.createSession(id).id) };
    }),
});

/** Fixtures with the default options. */
export const fixtures = emulatorFixtures();
