import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { prefetchClerkJs } from 'clerk-emulator';
import { clerkJsFolder } from '../../dev/stack/settings';
import { messageOf } from '../../dev/system/errors';
import { prepareBrowser } from '../harness/browser/chromium';
import { buildIfChanged } from '../harness/build';
import { expectAllDocumentedSeen, RESPONSES_FOLDER_VARIABLE } from './documented-responses';

/**
 * Prepares the tests that start the service, once for all Vitest projects of a run. Builds the service unless there is a build
 * of the same sources. Also unpacks the browser and downloads the browser SDK in advance. Vitest calls the returned function
 * after the tests. That function throws if the tests did not receive every documented response.
 */
export default async function setUp(): Promise<(() => void) | undefined> {
  if (process.env[RESPONSES_FOLDER_VARIABLE] !== undefined) return undefined; // another project has prepared the tests
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-'));
  process.env[RESPONSES_FOLDER_VARIABLE] = folder;
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  const [build, ...helpful] = await Promise.allSettled([
    buildIfChanged(),
    prepareBrowser(),
    prefetchClerkJs(clerkJsFolder),
  ]);
  for (const result of helpful) {
    // Most tests need neither the browser nor the browser SDK, so the run continues. If one of them is missing, the tests that
    // need it fail with their own message.
    if (result.status === 'rejected') process.stderr.write(`${messageOf(result.reason)}\n`);
  }
  if (build.status === 'rejected') {
    removeFolder();
    throw build.reason;
  }
  return () => {
    try {
      expectAllDocumentedSeen();
    } finally {
      removeFolder();
    }
  };
}
