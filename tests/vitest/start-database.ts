import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type EmbeddedPostgres, startPostgres } from '../../dev/postgres/server';
import { removeStaleFiles } from '../../dev/system/stale-files';
import { deployMigrations } from '../../lib/migrations/deploy';
import { SERVER_VARIABLE, TEMPLATE } from '../harness/dependencies/database';
import { sourceDigest } from '../harness/source-digest';

/** Folder of the stored cluster: a PostgreSQL cluster that has never served a test and whose template database is migrated. */
const STORE = '.local/tests';

/**
 * Starts a PostgreSQL server with a migrated template database, once for all Vitest projects of a test run. Its cluster is a
 * copy of the stored cluster, because initdb and the migrations take longer than most test files. A test run never changes
 * the stored cluster. Vitest calls this function before the tests and the returned function after the tests.
 */
export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[SERVER_VARIABLE] !== undefined) return undefined; // the setup of another project has started the server
  removeStaleFiles(os.tmpdir(), 'identity-link-tests-');
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-'));
  let postgres: EmbeddedPostgres | undefined;
  const tearDown = async () => {
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const cluster = path.join(folder, 'postgres');
    copyFolder(await storedCluster(folder), cluster);
    postgres = await startPostgres({ folder: cluster, durable: false });
    process.env[SERVER_VARIABLE] = postgres.url('postgres');
    return tearDown;
  } catch (error) {
    await tearDown();
    throw error;
  }
}

/**
 * Returns the folder of the stored cluster. Replaces the stored cluster if the folders below, the installed packages or the
 * version of Node.js have changed (`sourceDigest`).
 */
async function storedCluster(temporary: string): Promise<string> {
  const name = `postgres-${sourceDigest(['prisma/migrations', 'lib/migrations', 'dev/postgres']).slice(0, 16)}`;
  const stored = path.join(STORE, name);
  if (existsSync(stored)) return stored;
  mkdirSync(STORE, { recursive: true });
  for (const other of readdirSync(STORE)) rmSync(path.join(STORE, other), { recursive: true, force: true });
  const created = path.join(temporary, 'new-cluster');
  const postgres = await startPostgres({ folder: created, durable: false });
  await deployMigrations(postgres.url(TEMPLATE)).finally(() => postgres.stop());
  // The copy gets its final name last, so an incomplete copy is never used. If this run is killed, the next run removes the copy.
  const unfinished = `${stored}.${process.pid}`;
  copyFolder(created, unfinished);
  renameSync(unfinished, stored);
  return stored;
}

/** Copies a folder with the owners of its files. PostgreSQL does not run as root and must own its files. */
function copyFolder(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to]);
}
