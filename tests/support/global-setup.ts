import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { startPostgres } from '../../dev/postgres';
import { deployMigrations } from '../../prisma/deploy';
import { BUILD_FOLDER, BUILD_TIME_VALUES, withoutServiceVariables } from './build';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection string of a database of the run's PostgreSQL server; every test file makes databases of its own. */
    readonly postgresUrl: string;
    /** Name of the database, with migrations applied, that those are copies of. */
    readonly templateDatabase: string;
  }
}

const TEMPLATE = 'template_migrated';

/** Once a run: one PostgreSQL server, one migrated template database, one production build. */
export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-'));
  const postgres = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
  try {
    await postgres.createDatabase(TEMPLATE);
    await deployMigrations(postgres.url(TEMPLATE));
    execFileSync(process.execPath, ['node_modules/next/dist/bin/next', 'build'], {
      env: { ...withoutServiceVariables(), ...BUILD_TIME_VALUES, NEXT_DIST_DIR: BUILD_FOLDER },
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: 300_000,
    });
  } catch (error) {
    await postgres.stop();
    throw error;
  }
  provide('postgresUrl', postgres.url('postgres'));
  provide('templateDatabase', TEMPLATE);
  return async () => {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}
