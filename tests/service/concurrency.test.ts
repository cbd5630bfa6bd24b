import { expect, onTestFinished, test } from 'vitest';
import { holdRow } from '../harness/parts/held-row';
import { type Answer, deliver, me, register, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService({ processes: 2 }));

const process = (index: number) => service.processes[index % 2]?.url ?? service.url;
const caller = () => tokenFor(service.idp, 'user_caller');
const userIdOf = ({ body }: Answer) => Object(body).userId;

/**
 * Runs `work` with the race widened: no insert of the user ends before one is under way, and for a second the other
 * process has its chance to begin one as well.
 */
async function withInsertsHeldBack<T>(id: string, work: () => Promise<T>): Promise<T> {
  const row = await holdRow(service.database, id);
  const [result] = await Promise.all([work(), row.releaseOnceContended()]);
  return result;
}

test('of 200 concurrent registrations of one new id, in two processes, exactly one is answered 201', async () => {
  await me(process(0), caller());
  await me(process(1), caller());
  const answers = await withInsertsHeldBack('user_raced', () =>
    Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        register(process(index), caller(), { identityProviderUserId: 'user_raced' }),
      ),
    ),
  );
  const count = (status: number) => answers.filter((answer) => answer.status === status).length;
  expect({ created: count(201), existing: count(200) }).toEqual({ created: 1, existing: 199 });
  expect(new Set(answers.map(userIdOf)).size).toBe(1);
});

test('registrations race as safely in a database that isolates transactions by default', async () => {
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
    const row = await holdRow(isolated.database, identityProviderUserId);
    const answers = Array.from({ length: 20 }, (_, index) =>
      register(url(index), token, { identityProviderUserId }),
    );
    expect(await row.waiting(2)).toBe(true);
    // Somebody else was first: each of the waiting ones loses, in a transaction that began before.
    await row.commit();
    expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([200]));
  }
});

test.each([
  ['a serialization failure', '40001'],
  ['a deadlock', '40P01'],
  ['a conflict over an index that is being made', '23505'],
])('a registration that loses by %s (%s) is begun again', async (_, code) => {
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
  const registered = register(process(0), caller(), { identityProviderUserId: id });
  const answer = await registered.finally(() =>
    pool.query('DROP TRIGGER lose ON users; DROP FUNCTION lose; DROP SEQUENCE inserts'),
  );
  expect(answer.status).toBe(201);
  expect(await service.database.rowsOf(id)).toHaveLength(1);
});

test('300 concurrent first sights through guard, register and webhook, in two processes: one row, one internal id', async () => {
  const id = 'user_seen_first';
  const arrivals = [
    (index: number) => me(process(index), tokenFor(service.idp, id)),
    (index: number) => register(process(index), tokenFor(service.idp, id), { identityProviderUserId: id }),
    (index: number) => deliver(process(index), userCreated(id)),
  ];
  const answers = await withInsertsHeldBack(id, () =>
    Promise.all(Array.from({ length: 300 }, (_, index) => arrivals[index % 3]?.(index >> 1))),
  );
  const rows = await service.database.rowsOf(id);
  expect(rows).toHaveLength(1);
  expect(answers.filter((answer) => answer && answer.status !== 200 && answer.status !== 201)).toEqual([]);
  const userIds = answers.flatMap((answer) => (answer && userIdOf(answer) ? [userIdOf(answer)] : []));
  expect(userIds).toHaveLength(200);
  expect(new Set(userIds)).toEqual(new Set(rows.map(({ id }) => id)));
});

test('a burst of 100 first requests of one user in one process costs at most 5 statements', async () => {
  service.database.takeStatements();
  const answers = await Promise.all(
    Array.from({ length: 100 }, () => me(process(0), tokenFor(service.idp, 'user_burst'))),
  );
  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(service.database.takeStatements().length).toBeLessThanOrEqual(5);
  const created = answers.filter(({ headers }) =>
    headers.get('server-timing')?.includes('caller;desc=created'),
  );
  expect(created, 'one of them says that it created the user').toHaveLength(1);
});
