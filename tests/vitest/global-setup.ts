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
import { SERVER_VARIABLE, TEMPLATE } from '../harness/dependencies/database';
import { expectAllDocumentedSeen, RESPONSES_FOLDER_VARIABLE } from './documented-responses';

/** Projects whose tests need no production build and no browser. */
const WITHOUT_BUILD = new Set(['unit', 'unit-react-server', 'emulator', 'in-process']);
/** Projects whose tests also need no database. */
const WITHOUT_DATABASE = new Set(['unit', 'unit-react-server', 'emulator']);

/**
 * Prepares a test run. Starts a PostgreSQL server with a migrated template database. Builds the service unless there is
 * a build of the same sources. Also unpacks the browser and downloads the browser SDK in advance. Unit tests skip all of
 * this. In-process tests need only the database.
 */
export default async function setUp({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (vitest.projects.every(({ name }) => WITHOUT_DATABASE.has(name))) return undefined;
  const needsBuild = !vitest.projects.every(({ name }) => WITHOUT_BUILD.has(name));
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
  // The database and the build settle before an error is thrown, so that `tearDown` can stop the server.
  const needed = Promise.allSettled([migrated(), ...(needsBuild ? [buildIfChanged()] : [])]);
  const helpful = needsBuild ? [prepareBrowser(), prefetchClerkJs(clerkJsFolder)] : [];
  for (const result of await Promise.allSettled(helpful)) {
    // Most tests need neither the browser nor the browser SDK. The tests that need them fail with their own message.
    if (result.status === 'rejected') process.stderr.write(`${messageOf(result.reason)}\n`);
  }
  try {
    for (const result of await needed) if (result.status === 'rejected') throw result.reason;
    process.env[RESPONSES_FOLDER_VARIABLE] = path.join(folder, 'responses');
    mkdirSync(process.env[RESPONSES_FOLDER_VARIABLE]);
  } catch (error) {
    await tearDown();
    throw error;
  }
  return async () => {
    try {
      expectAllDocumentedSeen();
    } finally {
      await tearDown();
    }
  };
}
