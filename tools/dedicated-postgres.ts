import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startPostgres } from '../dev/postgres/server';
import { deployMigrations } from '../lib/migrations/deploy';
import { type DatabaseServer, TEMPLATE } from '../tests/harness/dependencies/database';

/** A PostgreSQL server that only one tool uses. The tool may restart the server and change the roles. */
export interface DedicatedPostgres extends DatabaseServer {
  /** Stops the server and keeps its data. */
  halt(): Promise<void>;
  /** Starts the halted server again on its previous port. */
  resume(): Promise<void>;
  /** Stops the server and removes its data. */
  stop(): Promise<void>;
}

/** Starts a server with a migrated template database. */
export async function startDedicatedPostgres(): Promise<DedicatedPostgres> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'identity-link-tests-postgres-'));
  const options = { folder: path.join(folder, 'postgres'), durable: false };
  let server = await startPostgres(options);
  await deployMigrations(server.url(TEMPLATE));
  const url = server.url('postgres');
  return {
    url,
    template: TEMPLATE,
    halt: () => server.stop(),
    async resume() {
      server = await startPostgres({ ...options, port: Number(new URL(url).port) });
    },
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
