import { parseArgs } from 'node:util';
import type { Examined } from '#lib/doctor/check';
import { examine } from '#lib/doctor/examine';
import { isLoopback } from '#lib/env';
import { log } from '#lib/log';
import { type ExitCode, runCommand, UsageError } from './command';

const USAGE = `npm run doctor -- [--url <https address>] [--json] [--local]

  Checks the environment that it runs in, and changes nothing in it: variables, the identity provider's keys, the database,
  the cache. Never prints a secret. On the local stack: npm run -s local doctor
  --url     also the deployed service there, from outside; it gets test events, none of which makes a user
  --json    the findings as JSON, and nothing else on standard output
  --local   the local stack, whose database has one role for everything, and whose first answers take long

  Exit code: 0 all is well, warnings or not, 1 a check failed, 2 it did not begin.`;

/** How long what did not answer may keep the process after the last word. */
const LEAVE_MS = 2_000;

const COLOURS = { ok: 32, skipped: 90, warning: 33, failure: 31 } as const;

/** The origin of an address that may be asked: over TLS, or on this machine. */
function originOf(address: string): string {
  const { origin, protocol, hostname, pathname, search, username } = URL.canParse(address)
    ? new URL(address)
    : new URL('none:');
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
    throw new UsageError('--url is an https:// address, or http:// on this machine');
  if (pathname !== '/' || search !== '' || username !== '')
    throw new UsageError('--url is an address without a path, a query and a name: https://app.example.com');
  return origin;
}

/** A row for each check, and below whatever is not well what to do about it. */
function table(rows: readonly Examined[], isColoured: boolean): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const paint = ({ status }: Examined) => {
    const word = (status === 'failure' ? 'FAILURE' : status).padEnd(7);
    return isColoured ? `\x1b[${COLOURS[status]}m${word}\x1b[0m` : word;
  };
  return rows
    .map((row) => {
      const remedy = 'remedy' in row ? `\n${' '.repeat(width + 11)}-> ${row.remedy}` : '';
      return `${paint(row)}  ${row.name.padEnd(width)}  ${row.finding}${remedy}\n`;
    })
    .join('');
}

async function main(): Promise<ExitCode> {
  const { values } = parseArgs({
    options: {
      url: { type: 'string' },
      json: { type: 'boolean', default: false },
      local: { type: 'boolean', default: false },
    },
  });
  const origin = values.url === undefined ? undefined : originOf(values.url);
  // Standard output is for the findings, which say what the log would.
  log.level = 'silent';
  const rows = await examine({ origin, isLocal: values.local });
  const count = (status: Examined['status']) => rows.filter((row) => row.status === status).length;
  const failures = count('failure');
  const isColoured = process.stdout.isTTY === true && !process.env['NO_COLOR'];
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ status: failures === 0 ? 'ok' : 'failure', checks: rows }, null, 2)}\n`
      : `${table(rows, isColoured)}\n${count('ok')} ok, ${count('warning')} to look at, ${failures} failed, ${count('skipped')} skipped\n`,
  );
  setTimeout(() => process.exit(), LEAVE_MS).unref();
  return failures === 0 ? 0 : 1;
}

await runCommand(USAGE, main);
