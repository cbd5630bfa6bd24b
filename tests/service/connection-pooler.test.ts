import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { arrive } from '../harness/arrivals';
import { serverOfThisRun } from '../harness/parts/database';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from '../harness/parts/pgbouncer';
import { type Answer, deliver, me, register, tokenFor, userCreated } from '../harness/requests';
import { startTestService, type TestService } from '../harness/service';

const notRun = hasPgBouncer
  ? ''
  : ' (NOT RUN: no pgbouncer on this machine; Debian: apt-get install pgbouncer)';

describe.skipIf(!hasPgBouncer)(`behind PgBouncer, pooling by transaction${notRun}`, () => {
  let pooler: PgBouncer;
  let service: TestService;

  beforeAll(async () => {
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

  const token = (id: string) => tokenFor(service.idp, id);
  const userIdOf = ({ body }: Answer) => Object(body).userId;

  test('guard, register and webhook link a user once, and agree on the internal id', async () => {
    const created = await register(service.url, token('user_caller'), {
      identityProviderUserId: 'user_pooled',
    });
    expect(created.status).toBe(201);
    expect(await deliver(service.url, userCreated('user_pooled'))).toMatchObject({ status: 200 });
    expect(userIdOf(await me(service.url, token('user_pooled')))).toBe(userIdOf(created));
    expect(await deliver(service.url, userCreated('user_pooled_hook'))).toMatchObject({ status: 200 });
    expect((await me(service.url, token('user_pooled_hook'))).status).toBe(200);
  });

  test('a crowd of new users over two server connections: one row each, no error', async () => {
    const figures = await arrive(service, { users: 60, concurrency: 24, seed: 1 });
    expect(figures).toMatchObject({ rows: 60, usersWithoutOneRow: 0, usersWithSeveralIds: 0, errors: [] });
    const { rows } = await service.database.pool.query(
      `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    expect(rows[0]?.count, 'connections of the pooler and the test').toBeLessThanOrEqual(2 + 4);
  });
});
