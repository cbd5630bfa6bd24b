import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startPostgres } from '../dev/postgres/server';
import { deployMigrations } from '../lib/storage/migrations';
import { type DatabaseServer, TEMPLATE } from '../tests/harness/dependencies/database';

/** A PostgreSQL server that only one tool uses. */
export interface DedicatedPostgres extends DatabaseServer {
  /** Stops the server and removes its data. */
  stop(): Promise<void>;
}

/** Starts a server with a migrated template database. */
export async function startDedicatedPostgres(): Promise<DedicatedPostgres> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'identity-link-tests-postgres-'));
  const server = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
  await deployMigrations(server.url(TEMPLATE));
  return {
    url: server.url('postgres'),
    template: TEMPLATE,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
