import { parseArgs } from 'node:util';
import { events } from '#events';
import type { CheckResult } from '#lib/doctor/check';
import { runChecks } from '#lib/doctor/run-checks';
import { isLoopback } from '#lib/env';
import { log } from '#lib/log';
import { type ExitCode, runCommand, UsageError } from './command';

const USAGE = `npm run doctor -- [--url <https URL>] [--json]

  Checks the environment of this command: the variables, the identity provider's keys, the database and the cache.
  Writes one key to the cache and deletes it. Changes nothing else, and does not print secrets. While the local
  stack (npm run dev, npm run preview) is running, check it with: npm run -s local doctor
  --url     also checks the deployed service at this URL, and sends it test events that do not create users
  --json    prints only the results, as JSON

  Exit code: 0 if no check failed, 1 if a check failed, 2 if the options are invalid.`;

/** Maximum time from the output to the exit of the process. Connections that are still open do not delay the exit further. */
const EXIT_TIMEOUT_MS = 2_000;

/** ANSI codes of the text colors. */
const COLORS = { ok: 32, skipped: 90, warning: 33, failure: 31 } as const;

/** Returns the origin of `url`, the value of the `--url` option. Throws a UsageError if the service cannot be at this URL. */
function parseOrigin(url: string): string {
  // `none:` replaces a text that is not a URL, so that the check of the protocol rejects the text.
  const { href, origin, protocol, hostname } = new URL(URL.canParse(url) ? url : 'none:');
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
    throw new UsageError('Invalid --url: use an https:// URL, or an http:// URL on this machine.');
  if (href !== `${origin}/`)
    throw new UsageError('Invalid --url: use an origin only, such as https://app.example.com.');
  return origin;
}

/** Formats each check as one line. A warning or a failure has a second line, which contains the remedy. */
function formatTable(checks: readonly CheckResult[], isColored: boolean): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const formatStatus = ({ status }: CheckResult) => {
    const padded = (status === 'failure' ? 'FAILURE' : status).padEnd(7);
    return isColored ? `\x1b[${COLORS[status]}m${padded}\x1b[0m` : padded;
  };
  return checks
    .map((check) => {
      const remedy = check.remedy ? `\n${' '.repeat(width + 11)}-> ${check.remedy}` : '';
      return `${formatStatus(check)}  ${check.name.padEnd(width)}  ${check.message}${remedy}\n`;
    })
    .join('');
}

async function main(): Promise<ExitCode> {
  const { values } = parseArgs({
    options: { url: { type: 'string' }, json: { type: 'boolean', default: false } },
  });
  const origin = values.url === undefined ? undefined : parseOrigin(values.url);
  // Disables the log, because it would mix with the results on standard output.
  log.level = 'silent';
  const checks = await runChecks(origin, Object.keys(events).length > 0);
  const count = (status: CheckResult['status']) => checks.filter((check) => check.status === status).length;
  const failures = count('failure');
  const warnings = count('warning');
  const isColored = process.stdout.isTTY === true && !process.env['NO_COLOR'];
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ status: failures === 0 ? 'ok' : 'failure', checks }, null, 2)}\n`
      : `${formatTable(checks, isColored)}\n${count('ok')} ok, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}, ${failures} failed, ${count('skipped')} skipped\n`,
  );
  setTimeout(() => process.exit(), EXIT_TIMEOUT_MS).unref();
  return failures === 0 ? 0 : 1;
}

await runCommand(USAGE, main);
