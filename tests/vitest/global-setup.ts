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
 * Prepares a test run. First step: starts a PostgreSQL server with a migrated template database. Second step: prepares the
 * production build and the browser. In-process tests need only the first step. Unit tests and emulator tests need neither step.
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
    // Imports prepare-services.ts only if it is needed, because it takes longer to load than a file of in-process tests takes
    // to run.
    const services = await import('./prepare-services');
    return services.prepareServices(path.join(folder, 'responses'));
  };
  // Both preparations settle before an error is thrown, so that `tearDown` can stop the PostgreSQL server.
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
