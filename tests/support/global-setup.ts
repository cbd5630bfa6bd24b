import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { messageOf } from '../../dev/errors';
import { prefetchClerkJs } from '../../dev/idp/clerk-js';
import { removeLeftovers } from '../../dev/leftovers';
import { type EmbeddedPostgres, startPostgres } from '../../dev/postgres';
import { deployMigrations } from '../../prisma/deploy';
import { build } from './build';
import { prepareBrowser } from './chromium';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection string of a database of the run's PostgreSQL server; every test file makes databases of its own. */
    readonly postgresUrl: string;
    /** Name of the database, with migrations applied, that those are copies of. */
    readonly templateDatabase: string;
  }
}

const TEMPLATE = 'template_migrated';

/**
 * Once a run: one PostgreSQL server, one migrated template database, one production build. In a fresh clone also the
 * browser and the browser SDK, which no page of a test then has to wait for.
 */
export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  removeLeftovers(os.tmpdir(), 'identity-link-tests-');
  for (const result of await Promise.allSettled([prepareBrowser(), prefetchClerkJs()])) {
    // Most tests do without; those that do not, say so themselves.
    if (result.status === 'rejected') process.stderr.write(`${messageOf(result.reason)}\n`);
  }
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-'));
  let postgres: EmbeddedPostgres | undefined;
  const tearDown = async () => {
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    postgres = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
    await postgres.createDatabase(TEMPLATE);
    await deployMigrations(postgres.url(TEMPLATE));
    await build();
    provide('postgresUrl', postgres.url('postgres'));
    provide('templateDatabase', TEMPLATE);
  } catch (error) {
    await tearDown();
    throw error;
  }
  return tearDown;
}
