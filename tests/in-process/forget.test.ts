import { afterEach, beforeEach, expect, test } from 'vitest';
import { importAsProcess, startInProcess } from '../harness/in-process';

const { database, kv } = await startInProcess();
const key = (user: string) => `auth:user-id-by-idp:${user}`;
const cached = (user: string) => kv.engine.call('GET', key(user));

const { forget, resolveUserId } = await importAsProcess(async () => ({
  ...(await import('#lib/users/forget')),
  ...(await import('#lib/user-id')),
}));

/** Commands and statements in the order of their arrival. */
const steps: string[] = [];
const record = database.proxy.onClientData;

beforeEach(() => {
  database.proxy.onClientData = (chunk) => {
    record?.(chunk);
    for (const statement of database.takeStatements()) steps.push(statement.split(' ', 1)[0] ?? '');
  };
  kv.beforeCommand = async (command) => {
    steps.push(command.toUpperCase());
  };
});
afterEach(async () => {
  await kv.proxy.treat('forward');
});

test('The deletion removes the entry, the row, the entry, and the entry again after the pause', async () => {
  const userId = await resolveUserId('user_gone');
  steps.length = 0;
  const result = await forget('user_gone', userId, async () => steps.push('pause'));
  expect(result).toBe('forgotten');
  const changes = steps.filter((step) => !['BEGIN', 'COMMIT'].includes(step));
  expect(changes).toEqual(['DEL', 'DELETE', 'DEL', 'pause', 'DEL', 'SELECT']);
  expect([await database.rowsOf('user_gone'), await cached('user_gone')]).toEqual([[], null]);
});

test('An id that a lookup stores during the pause is removed after it', async () => {
  const userId = await resolveUserId('user_late_write');
  const result = await forget('user_late_write', userId, () =>
    kv.engine.call('SET', key('user_late_write'), userId),
  );
  expect([result, await cached('user_late_write')]).toEqual(['forgotten', null]);
});

test('A user that is linked again during the pause keeps the new row', async () => {
  const userId = await resolveUserId('user_back');
  let next = '';
  const result = await forget('user_back', userId, async () => {
    next = await resolveUserId('user_back');
  });
  expect(result).toBe('relinked');
  expect(next).not.toBe(userId);
  expect(await database.rowsOf('user_back')).toMatchObject([{ id: next }]);
  expect(await resolveUserId('user_back')).toBe(next);
});

test('A row that another table refers to is not deleted', async () => {
  const userId = await resolveUserId('user_referenced');
  await database.pool.query(`CREATE TABLE orders (user_id uuid REFERENCES users (id))`);
  await database.pool.query('INSERT INTO orders VALUES ($1)', [userId]);
  expect(await forget('user_referenced', userId, async () => undefined)).toBe('referenced');
  expect(await resolveUserId('user_referenced')).toBe(userId);
});

test('Without a response of the cache, the deletion rejects before it and is uncertain after it', async () => {
  const [kept, gone] = [await resolveUserId('user_kept'), await resolveUserId('user_uncertain')];
  let rejected: unknown;
  const result = await forget('user_uncertain', gone, async () => {
    await kv.proxy.treat('refuse');
    rejected = forget('user_kept', kept).catch((error: Error) => error.message);
  });
  expect([result, await rejected]).toEqual(['uncertain', 'The cache does not respond. Nothing was deleted.']);
  expect(await database.rowsOf('user_uncertain')).toEqual([]);
  expect(await database.rowsOf('user_kept')).toMatchObject([{ id: kept }]);
});
