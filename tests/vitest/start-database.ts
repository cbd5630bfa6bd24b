import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startPostgres } from '../../dev/postgres/server';
import { removeStaleFiles } from '../../dev/system/stale-files';
import { deployMigrations } from '../../lib/migrations/deploy';
import { SERVER_VARIABLE, TEMPLATE } from '../harness/dependencies/database';

/**
 * Starts a PostgreSQL server with a migrated template database, once for all Vitest projects of a test run. Vitest calls this
 * function before the tests and the returned function after the tests.
 */
export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[SERVER_VARIABLE] !== undefined) return undefined; // the setup of another project has started the server
  removeStaleFiles(os.tmpdir(), 'identity-link-tests-');
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-'));
  const postgres = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
  await deployMigrations(postgres.url(TEMPLATE));
  process.env[SERVER_VARIABLE] = postgres.url('postgres');
  return async () => {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}
