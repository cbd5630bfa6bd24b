import { expect, test } from 'vitest';
import { lockRow } from '../harness/dependencies/row-lock';
import { importAsProcess, startInProcess } from '../harness/in-process';

const { database } = await startInProcess();
/** Returns the register function of a new process, which has no connection to the database yet. */
const loadRegister = async () =>
  (await importAsProcess(() => import('#lib/register'))).registerByIdentityProviderUserId;

test('Concurrent registrations succeed in a database whose default isolation level is REPEATABLE READ', async () => {
  const name = new URL(database.url).pathname.slice(1);
  await database.pool.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'repeatable read'`);
  await (await import('#lib/storage/database')).closeDatabase();
  const [register, registerElsewhere] = [await loadRegister(), await loadRegister()];
  const row = await lockRow(database, 'user_isolated');
  const calls = [register('user_isolated'), registerElsewhere('user_isolated')];
  expect(await row.waiting(2)).toBe(true);
  // After the commit, each waiting insert fails with a serialization failure, because its snapshot is older than the commit. The
  // service then retries the registration.
  await row.commit();
  const [inserted] = await database.rowsOf('user_isolated');
  const existing = { userId: inserted?.id, created: false };
  expect(await Promise.all(calls)).toEqual([existing, existing]);
});

test('A registration that waits for the start of a suspended database succeeds', async () => {
  const register = await loadRegister();
  await (await import('#lib/storage/database')).closeDatabase();
  const { connections } = database.proxy;
  await database.proxy.treat('hold');
  const call = register('user_waking');
  await expect.poll(() => database.proxy.connections).toBeGreaterThan(connections);
  await database.proxy.treat('forward');
  expect(await call).toMatchObject({ created: true });
});
