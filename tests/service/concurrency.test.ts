import { expect, onTestFinished, test } from 'vitest';
import { lockRow } from '../harness/dependencies/row-lock';
import { deliver, me, type ParsedResponse, register, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService({ processes: 2 }));

/** Returns the URL of the first process for an even index, and of the second process for an odd index. */
const processUrl = (index: number) => service.processes[index % 2]?.url ?? service.url;
const caller = () => tokenFor(service.idp, 'user_caller');
const userIdOf = ({ body }: ParsedResponse) => Object(body).userId;

/**
 * Runs `work` while a lock blocks the inserts of the user. Releases the lock once two inserts wait, so that they race. The
 * concurrent calls in one process share an insert, so each of the two inserts comes from a different process. If there is no
 * second insert, releases the lock once the first insert has waited for 1 s.
 */
async function withBlockedInserts<T>(id: string, work: () => Promise<T>): Promise<T> {
  const row = await lockRow(service.database, id);
  const [result] = await Promise.all([work(), row.releaseOnceContended()]);
  return result;
}

test('Exactly one of 40 concurrent registrations of a new id in two processes gets a 201, and all return the same internal id', async () => {
  await me(processUrl(0), caller());
  await me(processUrl(1), caller());
  const responses = await withBlockedInserts('user_raced', () =>
    Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        register(processUrl(index), caller(), { identityProviderUserId: 'user_raced' }),
      ),
    ),
  );
  const count = (status: number) => responses.filter((response) => response.status === status).length;
  expect({ created: count(201), existing: count(200) }).toEqual({ created: 1, existing: 39 });
  expect(new Set(responses.map(userIdOf)).size).toBe(1);
});

test('Concurrent registrations succeed in a database whose default isolation level is REPEATABLE READ', async () => {
  const isolated = await startTestService({
    processes: 2,
    async databaseUrl({ pool, url }) {
      const name = new URL(url).pathname.slice(1);
      await pool.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'repeatable read'`);
      return url;
    },
  });
  onTestFinished(() => isolated.stop());
  const url = (index: number) => isolated.processes[index % 2]?.url ?? isolated.url;
  const token = tokenFor(isolated.idp, 'user_caller');
  await me(url(0), token);
  await me(url(1), token);
  for (let round = 0; round < 5; round += 1) {
    const identityProviderUserId = `user_isolated_${round}`;
    const row = await lockRow(isolated.database, identityProviderUserId);
    const responses = Array.from({ length: 20 }, (_, index) =>
      register(url(index), token, { identityProviderUserId }),
    );
    expect(await row.waiting(2)).toBe(true);
    // `lockRow` inserted the row in a transaction that is still open, so that other inserts of the row wait. After the commit,
    // each waiting insert fails with a serialization failure, because its snapshot is older than the commit. The service then
    // retries the registration.
    await row.commit();
    expect(new Set((await Promise.all(responses)).map(({ status }) => status))).toEqual(new Set([200]));
  }
});

test.each([
  ['a serialization failure', '40001'],
  ['a deadlock', '40P01'],
  // While REINDEX CONCURRENTLY replaces the unique index, an insert that loses a race can fail despite ON CONFLICT DO NOTHING.
  ['a unique violation, as during REINDEX CONCURRENTLY', '23505'],
])('A registration is retried if its insert fails with %s (%s)', async (_, code) => {
  const { pool } = service.database;
  await pool.query(`
    CREATE SEQUENCE inserts;
    CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('inserts') = 1 THEN RAISE 'lost' USING ERRCODE = '${code}'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER lose BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION lose()`);
  const id = `user_lost_${code}`;
  const registered = register(processUrl(0), caller(), { identityProviderUserId: id });
  const response = await registered.finally(() =>
    pool.query('DROP TRIGGER lose ON users; DROP FUNCTION lose; DROP SEQUENCE inserts'),
  );
  expect(response.status).toBe(201);
  expect(await service.database.rowsOf(id)).toHaveLength(1);
});

test('If /users/v1/me, the register route and the webhook each receive 10 concurrent requests for one new user, one row is created', async () => {
  const id = 'user_seen_first';
  const entryPoints = [
    (index: number) => me(processUrl(index), tokenFor(service.idp, id)),
    (index: number) => register(processUrl(index), tokenFor(service.idp, id), { identityProviderUserId: id }),
    (index: number) => deliver(processUrl(index), userCreated(id)),
  ];
  const responses = await withBlockedInserts(id, () =>
    Promise.all(Array.from({ length: 30 }, (_, index) => entryPoints[index % 3]?.(index))),
  );
  const rows = await service.database.rowsOf(id);
  expect(rows).toHaveLength(1);
  expect(
    responses.filter((response) => response && response.status !== 200 && response.status !== 201),
  ).toEqual([]);
  const userIds = responses.flatMap((response) =>
    response && userIdOf(response) ? [userIdOf(response)] : [],
  );
  expect(userIds).toHaveLength(20);
  expect(new Set(userIds)).toEqual(new Set(rows.map(({ id }) => id)));
});

test('Concurrent requests of a new user with the same session token share a registration', async () => {
  service.database.takeStatements();
  const token = tokenFor(service.idp, 'user_burst');
  const responses = await Promise.all(Array.from({ length: 100 }, () => me(processUrl(0), token)));
  expect(responses.every(({ status }) => status === 200)).toBe(true);
  expect(service.database.takeStatements().length).toBeLessThan(100);
  const created = responses.filter(({ headers }) =>
    headers.get('server-timing')?.includes('caller;desc=created'),
  );
  expect(created, 'one response reports that its request created the user').toHaveLength(1);
});
