import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { deployMigrations } from '#lib/storage/migrations';
import { startPostgres } from '../../dev/postgres/server';
import { isAlive } from '../../dev/system/processes';
import { SERVER_VARIABLE, TEMPLATE } from '../harness/dependencies/database';
import '../harness/dependencies/signing-key'; // generates the key once for all workers

const PREFIX = 'identity-link-tests-';

/** Removes the folders of runs that were killed. The name of a folder contains the process id of its run. */
function removeFoldersOfEndedRuns(): void {
  for (const name of readdirSync(os.tmpdir())) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid)))
      rmSync(path.join(os.tmpdir(), name), { recursive: true, force: true, maxRetries: 3 });
  }
}

/**
 * Starts a PostgreSQL server with a migrated template database, once for all Vitest projects of a test run. Vitest calls this
 * function before the tests and the returned function after the tests.
 */
export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  if (process.env[SERVER_VARIABLE] !== undefined) return undefined; // the setup of another project has started the server
  removeFoldersOfEndedRuns();
  const folder = mkdtempSync(path.join(os.tmpdir(), `${PREFIX}${process.pid}-`));
  // After a Ctrl-C, Vitest exits without calling the returned function.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  // The temporary files of the tests go into the folder too. PostgreSQL may run under another account.
  process.env['TMPDIR'] = folder;
  chmodSync(folder, 0o711);
  const postgres = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
  await deployMigrations(postgres.url(TEMPLATE));
  process.env[SERVER_VARIABLE] = postgres.url('postgres');
  return () => postgres.stop();
}
