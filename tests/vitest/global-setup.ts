import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { type EmbeddedPostgres, startPostgres } from '../../dev/postgres/server';
import { removeStaleFiles } from '../../dev/system/stale-files';
import { deployMigrations } from '../../lib/migrations/deploy';
import { SERVER_VARIABLE, TEMPLATE } from '../harness/dependencies/database';

/** Projects whose tests need no database. */
const WITHOUT_DATABASE = new Set(['unit', 'unit-react-server', 'emulator']);
/** Projects whose tests need no production build and no browser. */
const WITHOUT_SERVICE = new Set([...WITHOUT_DATABASE, 'in-process']);

/**
 * Prepares a test run. Starts a PostgreSQL server with a migrated template database, and prepares the tests that start the
 * service. Unit tests skip both. In-process tests need only the database.
 */
export default async function setUp({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (vitest.projects.every(({ name }) => WITHOUT_DATABASE.has(name))) return undefined;
  const needsService = !vitest.projects.every(({ name }) => WITHOUT_SERVICE.has(name));
  removeStaleFiles(os.tmpdir(), 'identity-link-tests-');
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-'));
  let postgres: EmbeddedPostgres | undefined;
  const tearDown = async () => {
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const startDatabase = async () => {
    postgres = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
    await deployMigrations(postgres.url(TEMPLATE));
    process.env[SERVER_VARIABLE] = postgres.url('postgres');
  };
  const prepareServices = async () => {
    // Imported here, because loading its packages takes longer than a file of in-process tests.
    const services = await import('./prepare-services');
    return services.prepareServices(path.join(folder, 'responses'));
  };
  // Both preparations settle before an error is thrown, so that `tearDown` can stop the server.
  const [database, services] = await Promise.allSettled([
    startDatabase(),
    needsService ? prepareServices() : undefined,
  ]);
  for (const result of [database, services]) {
    if (result.status === 'fulfilled') continue;
    await tearDown();
    throw result.reason;
  }
  const check = services.status === 'fulfilled' ? services.value : undefined;
  return async () => {
    try {
      check?.();
    } finally {
      await tearDown();
    }
  };
}
