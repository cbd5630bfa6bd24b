import { mkdirSync } from 'node:fs';
import { prefetchClerkJs } from 'clerk-emulator';
import { clerkJsFolder } from '../../dev/stack/settings';
import { messageOf } from '../../dev/system/errors';
import { prepareBrowser } from '../harness/browser/chromium';
import { buildIfChanged } from '../harness/build';
import { expectAllDocumentedSeen, RESPONSES_FOLDER_VARIABLE } from './documented-responses';

/**
 * Prepares the tests that start the service. Builds the service unless there is a build of the same sources. Also unpacks the
 * browser and downloads the browser SDK in advance. The tests record the documented responses in `responsesFolder`. Returns
 * a function that runs after the tests and checks that they received every documented response.
 */
export async function prepareServices(responsesFolder: string): Promise<() => void> {
  mkdirSync(responsesFolder);
  process.env[RESPONSES_FOLDER_VARIABLE] = responsesFolder;
  const [build, ...helpful] = await Promise.allSettled([
    buildIfChanged(),
    prepareBrowser(),
    prefetchClerkJs(clerkJsFolder),
  ]);
  for (const result of helpful) {
    // Most tests need neither the browser nor the browser SDK. The tests that need them fail with their own message.
    if (result.status === 'rejected') process.stderr.write(`${messageOf(result.reason)}\n`);
  }
  if (build.status === 'rejected') throw build.reason;
  return expectAllDocumentedSeen;
}
