import { prefetchClerkJs } from 'clerk-emulator';
import { clerkJsFolder } from '../../dev/stack/settings';
import { messageOf } from '../../dev/system/errors';
import { buildIfChanged } from '../harness/build';

/** Environment variable that is set while a run has prepared the tests, or prepares them. */
const PREPARED = 'TESTS_SERVICES_PREPARED';

/**
 * Prepares the tests that start the service, once for all Vitest projects of a run. Builds the service unless there is a build
 * of the same sources. Also downloads the browser SDK in advance.
 */
export default async function setUp(): Promise<void> {
  if (process.env[PREPARED] !== undefined) return; // another project has prepared the tests
  process.env[PREPARED] = 'true';
  const [build, browserSdk] = await Promise.allSettled([buildIfChanged(), prefetchClerkJs(clerkJsFolder)]);
  // Most tests do not need the browser SDK, so the run continues without it. The tests that need it fail with their own message.
  if (browserSdk.status === 'rejected') process.stderr.write(`${messageOf(browserSdk.reason)}\n`);
  if (build.status === 'rejected') throw build.reason;
}
