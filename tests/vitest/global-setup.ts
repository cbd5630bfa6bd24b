import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { prefetchClerkJs } from 'clerk-emulator';
import type { TestProject } from 'vitest/node';
import { type EmbeddedPostgres, startPostgres } from '../../dev/postgres/server';
import { clerkJsFolder } from '../../dev/stack/settings';
import { messageOf } from '../../dev/system/errors';
import { removeStaleFiles } from '../../dev/system/stale-files';
import { deployMigrations } from '../../lib/migrations/deploy';
import { prepareBrowser } from '../harness/browser/chromium';
import { buildIfChanged } from '../harness/build';
import { SERVER_VARIABLE, TEMPLATE } from '../harness/parts/database';
import { ANSWERS_VARIABLE, expectAllSeen } from './documented-answers';

/**
 * Once a run: one PostgreSQL server, one migrated template database, one production build, unless there is one of the same
 * sources. In a fresh clone also the browser and the browser SDK, which no page of a test then has to wait for. Unit tests
 * need none of it.
 */
export default async function setUp({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (vitest.projects.every(({ name }) => name === 'unit' || name === 'emulator')) return undefined;
  removeStaleFiles(os.tmpdir(), 'identity-link-tests-');
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-'));
  let postgres: EmbeddedPostgres | undefined;
  const tearDown = async () => {
    await postgres?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  const migrated = async () => {
    postgres = await startPostgres({ folder: path.join(folder, 'postgres'), durable: false });
    await postgres.createDatabase(TEMPLATE);
    await deployMigrations(postgres.url(TEMPLATE));
    process.env[SERVER_VARIABLE] = postgres.url('postgres');
  };
  // None is waited for alone. Once all have ended, what was started can be stopped.
  const needed = Promise.allSettled([migrated(), buildIfChanged()]);
  for (const result of await Promise.allSettled([prepareBrowser(), prefetchClerkJs(clerkJsFolder)])) {
    // Most tests do without; those that do not, say so themselves.
    if (result.status === 'rejected') process.stderr.write(`${messageOf(result.reason)}\n`);
  }
  try {
    for (const result of await needed) if (result.status === 'rejected') throw result.reason;
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
