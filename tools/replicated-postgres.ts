import { execFile } from 'node:child_process';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { type EmbeddedPostgres, startPostgres } from '../dev/postgres/server';
import { endProcess, waitUntil } from '../dev/system/processes';
import { deployMigrations } from '../lib/storage/migrations';
import { type DatabaseServer, TEMPLATE } from '../tests/harness/dependencies/database';
import { startTcpProxy } from '../tests/harness/dependencies/tcp-proxy';

/** A primary with a synchronous standby, behind one address. */
export interface ReplicatedPostgres extends DatabaseServer {
  /** Kills the primary. Connections to the address are refused. */
  killPrimary(): Promise<void>;
  /** Promotes the standby and directs the address to the promoted standby. */
  promoteStandby(): Promise<void>;
  /** Stops both servers and removes their data. */
  stop(): Promise<void>;
}

const addressOf = (url: string) => ({ host: new URL(url).hostname, port: Number(new URL(url).port) });

/** Runs statements one by one, on one connection. */
async function run(url: string, ...statements: readonly string[]): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    let rows: unknown[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}

/**
 * Copies the folder of a stopped primary and configures the copy as a standby of this primary. Keeps the file
 * permissions.
 */
async function copyAsStandby(from: string, to: string, primaryUrl: string): Promise<void> {
  await promisify(execFile)('cp', ['-Rp', from, to]);
  const { hostname, port, username, password } = new URL(primaryUrl);
  await writeFile(path.join(to, 'data/standby.signal'), '');
  await appendFile(
    path.join(to, 'data/postgresql.auto.conf'),
    `primary_conninfo = 'host=${hostname} port=${port} user=${username} password=${password}'\n`,
  );
}

/**
 * Starts a primary and a standby. Both have a migrated template database. The primary acknowledges a commit only after the
 * standby has written the commit. Without a standby, it acknowledges no commit. The promoted standby therefore has every
 * acknowledged commit.
 */
export async function startReplicatedPostgres(): Promise<ReplicatedPostgres> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'identity-link-tests-postgres-'));
  const start = (name: string, port?: number): Promise<EmbeddedPostgres> =>
    startPostgres({ folder: path.join(folder, name), durable: false, ...(port ? { port } : {}) });

  const first = await start('primary');
  await deployMigrations(first.url(TEMPLATE));
  await first.stop();
  const server = addressOf(first.url('postgres'));
  const link = await startTcpProxy(server);
  const linkUrl = new URL(first.url('postgres'));
  linkUrl.port = String(link.port);
  await copyAsStandby(path.dirname(first.dataFolder), path.join(folder, 'standby'), linkUrl.href);
  const [primary, standby] = await Promise.all([start('primary', server.port), start('standby')]);
  const url = new URL(first.url('postgres'));
  // `ALTER SYSTEM` changes a file of the primary after the copy was made, so the standby does not get this setting. With this
  // setting, the standby would wait for a second standby after its promotion, and there is no second standby.
  await run(
    primary.url('postgres'),
    `ALTER SYSTEM SET synchronous_standby_names = '*'`,
    'SELECT pg_reload_conf()',
    // Overrides the non-durable setting that the server was started with.
    `ALTER ROLE ${url.username} SET synchronous_commit = on`,
  );
  const inSync = async () => {
    const statement = `SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'`;
    return (await run(primary.url('postgres'), statement)).length > 0;
  };

  const address = await startTcpProxy(server);
  url.port = String(address.port);
  const replicated: ReplicatedPostgres = {
    url: url.href,
    template: TEMPLATE,
    async killPrimary() {
      // Closes the address first. The processes of a killed primary no longer wait for the standby, so a commit may exist only
      // on the primary. No client may get an acknowledgement of such a commit.
      await address.treat('refuse');
      const [pid] = (await readFile(path.join(primary.dataFolder, 'postmaster.pid'), 'utf8')).split('\n');
      await endProcess(Number(pid));
    },
    async promoteStandby() {
      await run(standby.url('postgres'), 'SELECT pg_promote()');
      address.setTarget(addressOf(standby.url('postgres')));
      await address.treat('forward');
    },
    async stop() {
      for (const proxy of [address, link]) await proxy.stop();
      for (const each of [primary, standby]) await each.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
  if (await waitUntil(inSync, 30_000)) return replicated;
  await replicated.stop();
  throw new Error('The standby does not replicate');
}
