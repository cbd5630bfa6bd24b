import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import * as z from 'zod/mini';
import { retry } from '#lib/concurrency/retry';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { countUsers } from '#lib/idp/backend-api';
import { backfill } from '#lib/users/backfill';
import { type ExitCode, runCommand, safeMessage, secondsOf, shown, UsageError } from '../command';
import { showProgress } from '../progress';
import { type State, stateFile } from './state-file';

const USAGE = `npm run users:backfill -- [--since <ISO date>] [--dry-run] [--state <file>] [--retry-seconds <seconds>]

  Links every unlinked user of the identity provider: inserts a row with a new internal id into the table users. Omits users
  that an operator has deleted (forgotten users). Continues where an interrupted run stopped.
  --since           only users created since this date, such as 2026-11-01 or 2026-11-01T08:00:00Z
  --dry-run         only counts, without changes and without a state file
  --state           file with the progress of the run (users-backfill.json)
  --retry-seconds   retries failing requests and statements for this long (120)

  Needs IDP_SECRET_KEY and DATABASE_URL.
  Exit code: 0 no user failed, 1 a user failed or an error occurred, 2 the command did not start.`;

/** Numbers of users by result, at the start of a run. */
const NO_USERS = { seen: 0, linked: 0, alreadyLinked: 0, forgotten: 0, failed: 0 };
/** Maximum number of failed users that the command prints. */
const MAX_SHOWN_FAILURES = 50;

function parseDate(since: string): Date {
  const date = new Date(since);
  if (!/^\d{4}-\d\d-\d\d/.test(since) || Number.isNaN(date.getTime()))
    throw new UsageError('--since must be a date, such as 2026-11-01');
  return date;
}

/**
 * Returns the id of a run, which the state file contains. A run continues an interrupted run only if both have the same secret
 * key, database and `--since`, and therefore the same id.
 */
function runId(secretKey: string, databaseUrl: string, since: Date | undefined): string {
  const { host, pathname } = new URL(databaseUrl);
  const parts = JSON.stringify([secretKey, host, pathname, since?.getTime()]);
  return createHash('sha256').update(parts).digest('hex').slice(0, 16);
}

async function main(): Promise<ExitCode> {
  const { values } = parseArgs({
    options: {
      since: { type: 'string' },
      'dry-run': { type: 'boolean', default: false },
      state: { type: 'string', default: 'users-backfill.json' },
      'retry-seconds': { type: 'string', default: '120' },
    },
  });
  const since = values.since === undefined ? undefined : parseDate(values.since);
  const dryRun = values['dry-run'];
  const seconds = secondsOf(values['retry-seconds'], 'retry-seconds');
  const { IDP_SECRET_KEY, DATABASE_URL } = parseEnvironmentSubset(
    z.pick(variables, { IDP_SECRET_KEY: true, DATABASE_URL: true, CLERK_API_URL: true }),
  );
  const file = stateFile(values.state, runId(IDP_SECRET_KEY, DATABASE_URL, since));
  const saved = dryRun ? undefined : file.read();
  const figures: State['figures'] = saved?.figures ?? { ...NO_USERS };
  const seenBefore = figures.seen;

  const progress = showProgress();
  const { say } = progress;
  const retryOptions = {
    seconds,
    onWait: (reason: string, wait: number) => say(`${reason}. Retry in ${wait} s`),
  };
  if (saved) say(`Continuing after ${figures.seen} users (${values.state})`);
  // With `--since`, the total is unknown, because the provider returns only the number of all users.
  if (since === undefined) progress.expect((await retry(retryOptions, countUsers)) - seenBefore);

  const isComplete = await (async () => {
    try {
      for await (const step of backfill({ from: saved?.cursor ?? since, dryRun, retryOptions })) {
        for (const { id, reason } of step.failed.slice(0, Math.max(MAX_SHOWN_FAILURES - figures.failed, 0)))
          say(`failed: ${shown(id).slice(0, 80)}: ${reason}`);
        figures.seen += step.seen;
        figures.linked += step.linked;
        figures.alreadyLinked += step.alreadyLinked;
        figures.forgotten += step.forgotten;
        figures.failed += step.failed.length;
        if (!dryRun) file.write({ cursor: step.cursor, figures });
        progress.at(figures.seen - seenBefore);
      }
      return true;
    } catch (error) {
      say(`Stopped early: ${safeMessage(error)}`);
      return false;
    }
  })();
  progress.end();
  const { seen, linked, alreadyLinked, forgotten, failed } = figures;
  process.stdout.write(
    `${seen} seen, ${linked} ${dryRun ? 'to link' : 'linked'}, ${alreadyLinked} already linked, ${forgotten} forgotten, ${failed} failed\n`,
  );
  if (isComplete && !dryRun) file.remove();
  if (!isComplete) process.stderr.write('Run the same command again.\n');
  return isComplete && failed === 0 ? 0 : 1;
}

await runCommand(USAGE, main);
