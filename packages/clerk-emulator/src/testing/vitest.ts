import { randomUUID } from 'node:crypto';
import { type Emulator, type EmulatorOptions, startEmulator } from '../emulator';

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
