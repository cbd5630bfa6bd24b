import { spawnSync } from 'node:child_process';
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../dev/system/listen';
import { startProcess } from '../../dev/system/start-process';

/** True if PgBouncer is installed (Debian: the package `pgbouncer`). */
export const hasPgBouncer = spawnSync('pgbouncer', ['--version']).status === 0;

/** Id of the Unix user `nobody` and of its group. The user has no privileges. */
const NOBODY_ID = 65534;

/** Starts a PgBouncer in transaction mode with at most two server connections for each pair of database and user. */
export async function startPgBouncer(serverUrl: string) {
  const server = new URL(serverUrl);
  const port = await freePort();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'identity-link-tests-pgbouncer-'));
  const users = path.join(folder, 'users.txt');
  const settings = path.join(folder, 'pgbouncer.ini');
  await writeFile(users, `"${server.username}" "${decodeURIComponent(server.password)}"\n`);
  await writeFile(
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
  // PgBouncer does not start as root, so root starts it as `nobody`.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const file of [users, settings, folder]) await chown(file, NOBODY_ID, NOBODY_ID);
  await chmod(folder, 0o700);
  const identity = isRoot ? { uid: NOBODY_ID, gid: NOBODY_ID } : {};
  const { ready, stop } = startProcess('pgbouncer', [settings], identity);
  /** Returns a URL that reaches the same database through the pooler. */
  const through = (databaseUrl: string) => Object.assign(new URL(databaseUrl), { port: String(port) }).href;
  const accepts = async () => {
    const client = new Client({ connectionString: through(serverUrl) });
    const up = await client.connect().then(
      () => true,
      () => false,
    );
    await client.end().catch(() => undefined);
    return up;
  };
  await ready(accepts);
  return {
    through,
    async stop() {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
