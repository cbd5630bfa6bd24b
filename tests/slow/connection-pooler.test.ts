import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startBurst, violationsOf } from '../harness/burst';
import { serverOfThisRun } from '../harness/dependencies/database';
import { startTestService, type TestService } from '../harness/service';
import { hasPgBouncer, startPgBouncer } from './pgbouncer';

const notRun = hasPgBouncer
  ? ''
  : ' (NOT RUN: no pgbouncer on this machine; Debian: apt-get install pgbouncer)';

describe.skipIf(!hasPgBouncer)(`PgBouncer in transaction mode${notRun}`, () => {
  let pooler: Awaited<ReturnType<typeof startPgBouncer>>;
  let service: TestService;

  beforeAll(async () => {
    // This PgBouncer opens at most two connections to a database.
    pooler = await startPgBouncer(serverOfThisRun().url);
    service = await startTestService({
      processes: 2,
      databaseUrl: ({ pool }) => pooler.through(String(pool.options.connectionString)),
    });
  });
  afterAll(async () => {
    await service?.stop();
    await pooler?.stop();
  });

  test('If PgBouncer may open only two connections to the database, concurrent requests for new users create one row for each user', async () => {
    const burst = await startBurst(service, 'pooled', 24);
    await expect.poll(() => burst.acknowledged().size).toBeGreaterThan(60);
    await burst.end();
    expect(new Set(burst.calls.map(({ status }) => status))).toEqual(new Set([200, 201]));
    expect(await violationsOf(service, burst)).toEqual([]);
    const { rows } = await service.database.pool.query(
      `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    // At most two of these connections belong to PgBouncer. The test allows four more for idle connections in its own pool.
    expect(rows[0]?.count, 'open connections of PgBouncer and of the test').toBeLessThanOrEqual(2 + 4);
  });

  test('The doctor names PgBouncer, through which a lock of one connection excludes another', async () => {
    vi.stubEnv('DATABASE_URL', pooler.through(String(service.database.pool.options.connectionString)));
    const { checkDatabase } = await import('#lib/doctor/database');
    const message = expect.stringMatching(/^PostgreSQL 1.*, a transaction pooler$/);
    expect(await checkDatabase(false)).toContainEqual({ name: 'settings', status: 'ok', message });
    await (await import('#lib/storage/database')).closeDatabase();
    vi.unstubAllEnvs();
  });
});
