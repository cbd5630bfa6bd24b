import { beforeEach, expect, test } from 'vitest';
import { importAsProcess, startInProcess } from '../harness/in-process';

const { database, kv } = await startInProcess();
const issuedAt = () => undefined;
const { contextOf } = await importAsProcess(() => import('#lib/guard'));

beforeEach(() => {
  kv.takeCommands();
  database.takeStatements();
});

test('A request with a verified session gets a frozen context with the internal id and the identity-provider id of the user', async () => {
  const context = await contextOf({ user: 'user_new', issuedAt });
  const [row] = await database.rowsOf('user_new');
  expect(context).toEqual({ isAuthenticated: true, userId: row?.id, identityProviderUserId: 'user_new' });
  expect(Object.isFrozen(context)).toBe(true);
});

test('A request without a verified session gets no context and causes no cache command and no database statement', async () => {
  expect(await contextOf({ user: undefined, reason: 'expired' })).toBeUndefined();
  expect([kv.takeCommands(), database.takeStatements()]).toEqual([[], []]);
});

test('30 concurrent requests of three new users get the correct internal ids with six cache commands and four database statements', async () => {
  const users = Array.from({ length: 30 }, (_, index) => `user_${index % 3}`);
  const contexts = await Promise.all(users.map((user) => contextOf({ user, issuedAt })));
  for (const [index, user] of users.entries()) {
    expect(await database.rowsOf(user)).toMatchObject([{ id: contexts[index]?.userId }]);
  }
  expect(kv.takeCommands()).toHaveLength(6);
  // One SELECT for all three users and one INSERT for each user.
  expect(database.takeStatements()).toHaveLength(4);
});
