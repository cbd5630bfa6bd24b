import { createClerkClient, verifyToken } from '@clerk/backend';
import { test as base, expect } from 'vitest';
import { type EmulatorFixtures, fixtures } from '../src/testing';

const test = base.extend<EmulatorFixtures>(fixtures);

test('The fixture signedInAs creates a user of the emulator and returns a valid session token of the user', async ({
  emulator,
  signedInAs,
}) => {
  const { CLERK_SECRET_KEY: secretKey, CLERK_API_URL: apiUrl, CLERK_JWT_KEY: jwtKey } = emulator.variables;
  if (!secretKey || !apiUrl || !jwtKey) throw new Error('The emulator has no variables.');
  const { id, email, token } = signedInAs({ firstName: 'Ada' });
  expect(await verifyToken(token, { jwtKey })).toMatchObject({ sub: id });
  const { users } = createClerkClient({ secretKey, apiUrl, telemetry: { disabled: true } });
  expect(await users.getUser(id)).toMatchObject({
    firstName: 'Ada',
    primaryEmailAddress: { emailAddress: email },
  });
});

test('The tests of a file share the emulator of the fixtures, and each signedInAs creates another user', async ({
  emulator,
  signedInAs,
}) => {
  const [one, other] = [signedInAs(), signedInAs()];
  expect(one.email).not.toBe(other.email);
  expect(emulator.store.users.size()).toBe(3);
});
