import { events } from '#events';
import { isLoopback } from '#lib/base/env';
import { UsageError } from '#lib/base/errors';
import { log } from '#lib/base/log';
import { runChecks } from '#lib/doctor/run-checks';
import { closeDatabase } from '#lib/storage/database';
import { report } from './check-table';
import { createProgram, runMain } from './command';

/** Returns the origin of `--url`. Throws, without the URL and its password, if the service cannot be at this URL. */
function parseOrigin(url: string): string {
  // `none:` replaces a text that is not a URL, so that the check of the protocol rejects the text.
  const { href, origin, protocol, hostname } = new URL(URL.canParse(url) ? url : 'none:');
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
    throw new UsageError('Invalid --url: use an https:// URL, or an http:// URL on this machine.');
  if (href !== `${origin}/`)
    throw new UsageError('Invalid --url: use an origin only, such as https://app.example.com.');
  return origin;
}

interface Options {
  readonly url?: string;
  readonly json?: boolean;
}

async function diagnose({ url, json }: Options): Promise<void> {
  // Disables the log, because it would mix with the results on standard output.
  log.level = 'silent';
  report(await runChecks(url, Object.keys(events).length > 0), json);
}

await runMain(
  createProgram(
    'doctor',
    "Checks the environment of this command: the variables, the identity provider's keys, the database and the cache. Writes one key to the cache and deletes it. Changes nothing else, and does not print secrets.",
  )
    .option(
      '--url <https URL>',
      'also checks the deployed service at this URL, and sends it test events that do not create users',
      parseOrigin,
    )
    .option('--json', 'prints only the results, as JSON')
    .addHelpText(
      'after',
      '\nWhile the local stack (npm run dev, npm run preview) is running, check it with: npm run -s local doctor\nThe exit code is 0 if no check failed, 1 if a check failed, 2 if the options are invalid.',
    )
    .action(diagnose),
  closeDatabase,
);
