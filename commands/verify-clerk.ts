import { UsageError } from '#lib/base/errors';
import { connectInstance, MARK, removeTestData } from '#lib/clerk/development-instance';
import { checkFacts } from '#lib/clerk/facts';
import { API_VERSION, SDK_VERSION } from '#lib/clerk/sdk-version';
import { report } from './check-table';
import { createProgram, print, runMain } from './command';

const INTERRUPTED = 130;
/** Time limits of the checks, and of the removal of what they have created. */
const [CHECKS_MS, REMOVAL_MS] = [600_000, 120_000];

function requireTestKeys(): void {
  for (const name of ['IDP_SECRET_KEY', 'IDP_PUBLISHABLE_KEY']) {
    const key = process.env[name]?.trim();
    if (/^[ps]k_test_/.test(key ?? '')) continue;
    const problem = key ? 'is not a test key' : 'is missing';
    throw new UsageError(`${name} ${problem}. Set it to the key of a development instance (…_test_…).`);
  }
}

async function verifyClerk({ json }: { readonly json?: boolean }): Promise<void> {
  requireTestKeys();
  const interrupt = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupt.abort());
  const limit = AbortSignal.any([interrupt.signal, AbortSignal.timeout(CHECKS_MS)]);
  const instance = connectInstance(limit);
  let mayExist = false;
  const say = (line: string) => print(line, process.stderr);
  try {
    const left = await removeTestData(instance);
    if (left > 0) say(`Removed what an earlier run has left: ${left}`);
    say(
      `Creates two users (${MARK}…+clerk_test@example.com) and an organization, and removes them at the end.`,
    );
    mayExist = true;
    const checks = await checkFacts(instance, limit);
    const date = new Date().toISOString().slice(0, 10);
    report(checks, json, { '@clerk/backend': SDK_VERSION, API: API_VERSION, date });
  } catch (error) {
    if (!interrupt.signal.aborted) throw error;
    process.exitCode = INTERRUPTED;
  } finally {
    // A lost response may have created a user, too.
    if (mayExist) await removeTestData(connectInstance(AbortSignal.timeout(REMOVAL_MS), instance.created));
  }
}

await runMain(
  createProgram(
    'verify:clerk',
    'Tries what this project assumes about Clerk, against the development instance of IDP_SECRET_KEY and IDP_PUBLISHABLE_KEY. Creates two users and an organization, and removes them. A later run removes what an ended one has left.',
  )
    .option('--json', 'prints only the results, as JSON')
    .addHelpText(
      'after',
      '\nThe exit code is 0 if no check failed, 1 if the instance differs, 2 if a key is not a test key.',
    )
    .action(verifyClerk),
);
