import { prefetchClerkJs } from 'clerk-emulator';
import { messageOf } from '#lib/base/errors';
import { clerkJsFolder } from '../../dev/stack/settings';
import { buildIfChanged } from '../harness/build';

/** Builds the service unless there is a build of the same sources. Also downloads the browser SDK in advance. */
export default async function setUp(): Promise<void> {
  const [build, browserSdk] = await Promise.allSettled([buildIfChanged(), prefetchClerkJs(clerkJsFolder)]);
  // Most tests do not need the browser SDK, so the run continues without it. The tests that need it fail with their own message.
  if (browserSdk.status === 'rejected') process.stderr.write(`${messageOf(browserSdk.reason)}\n`);
  if (build.status === 'rejected') throw build.reason;
}
