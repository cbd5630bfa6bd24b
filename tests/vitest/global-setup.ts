import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { TestProject } from 'vitest/node';
import { prefetchClerkJs } from '../../dev/idp/clerk-js';
import { type EmbeddedPostgres, startPostgres } from '../../dev/postgres/server';
import { messageOf } from '../../dev/system/errors';
import { removeLeftovers } from '../../dev/system/leftovers';
import { deployMigrations } from '../../prisma/deploy';
import { prepareBrowser } from '../harness/browser/chromium';
import { build } from '../harness/build';
import { SERVER_VARIABLE, TEMPLATE } from '../harness/parts/database';
import { ANSWERS_VARIABLE, expectAllSeen } from './documented-answers';

/**
 * Once a run: one PostgreSQL server, one migrated template database, one production build. In a fresh clone also the
 * browser and the browser SDK, which no page of a test then has to wait for. Unit tests need none of it.
 */
export default async function setUp({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (vitest.projects.every(({ name }) => name === 'unit')) return undefined;
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
    process.env[SERVER_VARIABLE] = postgres.url('postgres');
    process.env[ANSWERS_VARIABLE] = path.join(folder, 'answers');
    mkdirSync(process.env[ANSWERS_VARIABLE]);
  } catch (error) {
    await tearDown();
    throw error;
  }
  return async () => {
    try {
      expectAllSeen();
    } finally {
      await tearDown();
    }
  };
}
