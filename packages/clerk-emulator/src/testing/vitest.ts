import { randomUUID } from 'node:crypto';
import { type Emulator, startEmulator } from '../emulator';

/** The fixtures that `fixtures` adds to a test of Vitest. */
export interface EmulatorFixtures {
  /** An emulator for the tests of one file. */
  readonly emulator: Emulator;
  /** Creates a user with a session. The default e-mail address is unique. Throws if the given address is taken. */
  signedInAs(user?: NewUser): TestUser;
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

/** Fixtures for `test.extend` of Vitest. */
export const fixtures: {
  emulator: [Fixture<Emulator, object>, { scope: 'file' }];
  signedInAs: Fixture<EmulatorFixtures['signedInAs'], Pick<EmulatorFixtures, 'emulator'>>;
} = {
  emulator: [
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of the required fixtures from the pattern.
    async ({}, use) => {
      const emulator = await startEmulator();
      await use(emulator).finally(() => emulator.stop());
    },
    { scope: 'file' },
  ],
  signedInAs: ({ emulator }, use) =>
    use((user = {}) => {
      const { id, email } = emulator.createUser({ email: `user-${randomUUID()}@example.com`, ...user });
      return { id, email, token: emulator.sessionToken(emulator.createSession(id).id) };
    }),
};
