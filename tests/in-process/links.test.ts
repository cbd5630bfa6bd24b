import { beforeEach, expect, test } from 'vitest';
import { lockRow } from '../harness/dependencies/row-lock';
import {
  DISK_FULL,
  failInserts,
  importAsProcess,
  SERIALIZATION_FAILURE,
  startInProcess,
} from '../harness/in-process';

const { database } = await startInProcess();
const {
  findLink,
  linkMany,
  registerByIdentityProviderUserId: register,
} = await importAsProcess(async () => ({
  ...(await import('#lib/ids/store')),
  ...(await import('#lib/operator/backfill')),
  ...(await import('#lib/register')),
}));
// A link is a row of the table `users`. It contains the identity provider's id and the service's id of one user.

beforeEach(() => {
  database.takeStatements();
});

test('The link of many users takes one statement to find the unlinked users, and another one only if there are any', async () => {
  await register('user_b');
  database.takeStatements();
  expect([...(await linkMany(['user_a', 'user_b', 'user_c'])).keys()]).toEqual(['user_a', 'user_c']);
  expect(database.takeVerbs()).toEqual(['SELECT', 'INSERT']);
  expect((await linkMany(['user_a', 'user_b', 'user_c'])).size).toBe(0);
  expect(database.takeVerbs()).toEqual(['SELECT']);
  expect(await database.users('user__')).toEqual(['user_a', 'user_b', 'user_c']);
});

test('A user that another transaction links first is not among the new links', async () => {
  const other = await lockRow(database, 'user_f');
  const linking = linkMany(['user_f', 'user_g']);
  expect(await other.waiting(1)).toBe(true);
  await other.commit();
  expect([...(await linking).keys()]).toEqual(['user_g']);
  expect(await database.idsOf('user_f')).toHaveLength(1);
});

test('The link of many users is repeated after a serialization failure, and rejects with the error of a full disk', async () => {
  await failInserts(database, SERIALIZATION_FAILURE, 1);
  expect((await linkMany(['user_h'])).size).toBe(1);
  await failInserts(database, DISK_FULL, 1);
  await expect(linkMany(['user_i'])).rejects.toThrow();
  expect(await database.idsOf('user_i')).toEqual([]);
});

test('Concurrent lookups of users share one statement', async () => {
  await linkMany(['user_k', 'user_l']);
  database.takeStatements();
  const [k, none, l] = await Promise.all(
    ['user_k', 'user_without_link', 'user_l'].map((user) => findLink('user', user)),
  );
  expect(database.takeVerbs()).toEqual(['SELECT']);
  expect([[k?.id], [l?.id]]).toEqual([await database.idsOf('user_k'), await database.idsOf('user_l')]);
  expect(none).toEqual({ state: 'none' });
});
