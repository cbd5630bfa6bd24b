import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { freePort } from '../../dev/system/listen';
import { startProcess } from '../../dev/system/start-process';
import { startBurst, violationsOf } from '../harness/burst';
import { query, serverOfThisRun } from '../harness/dependencies/database';
import { startTestService, type TestService } from '../harness/service';
import { temporaryFolder } from '../vitest/temporary-folder';

const hasPgBouncer = spawnSync('pgbouncer', ['--version']).status === 0;
const notRun = hasPgBouncer
  ? ''
  : ' (NOT RUN: no pgbouncer on this machine; Debian: apt-get install pgbouncer)';
/** Id of the Unix user `nobody` and of its group. PgBouncer does not start as root, so root starts it as `nobody`. */
const NOBODY = { uid: 65534, gid: 65534 };

const folder = temporaryFolder();
const port = await freePort();
/** Returns a URL that reaches the same database through the pooler. */
const through = (databaseUrl: string) => Object.assign(new URL(databaseUrl), { port: String(port) }).href;

/** Starts a PgBouncer in transaction mode with at most two server connections for each pair of database and user. */
async function startPgBouncer() {
  const server = new URL(serverOfThisRun().url);
  const users = path.join(folder, 'users.txt');
  const settings = path.join(folder, 'pgbouncer.ini');
  writeFileSync(users, `"${server.username}" "${decodeURIComponent(server.password)}"\n`);
  writeFileSync(
    settings,
    `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
`,
  );
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const file of [users, settings, folder]) chownSync(file, NOBODY.uid, NOBODY.gid);
  chmodSync(folder, 0o700);
  const { ready, stop } = startProcess('pgbouncer', [settings], isRoot ? NOBODY : {});
  await ready(() =>
    query(through(server.href), 'SELECT').then(
      () => true,
      () => false,
    ),
  );
  return stop;
}

describe.skipIf(!hasPgBouncer)(`PgBouncer in transaction mode${notRun}`, () => {
  let service: TestService;
  beforeAll(async () => {
    const stopPooler = await startPgBouncer();
    const databaseUrl = ({ pool }: TestService['database']) => through(String(pool.options.connectionString));
    service = await startTestService({ processes: 2, databaseUrl });
    return async () => {
      await service.stop();
      await stopPooler();
    };
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
    vi.stubEnv('DATABASE_URL', through(String(service.database.pool.options.connectionString)));
    const { checkDatabase } = await import('#lib/doctor/database');
    const message = expect.stringMatching(/^PostgreSQL 1.*, a transaction pooler$/);
    expect(await checkDatabase(false)).toContainEqual({ name: 'settings', status: 'ok', message });
    await (await import('#lib/storage/database')).closeDatabase();
    vi.unstubAllEnvs();
  });
});
