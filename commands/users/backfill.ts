import { createHash } from 'node:crypto';
import { parseArgs } from 'node:util';
import * as z from 'zod/mini';
import { retry } from '#lib/concurrency/retry';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { countUsers } from '#lib/idp/backend-api';
import { backfill } from '#lib/users/backfill';
import { type ExitCode, inWords, runCommand, secondsOf, shown, UsageError } from '../command';
import { showProgress } from '../progress';
import { type State, stateFile } from './state-file';

const USAGE = `npm run users:backfill -- [--since <ISO date>] [--dry-run] [--state <file>] [--patience <seconds>]

  Links every user of the identity provider who is not linked. Goes on where it stopped.
  --since      only users created since then, such as 2026-11-01 or 2026-11-01T08:00:00Z
  --dry-run    counts, changes nothing, and keeps no state
  --state      where it is kept how far the run has come (users-backfill.json)
  --patience   how long provider or database may fail in a row (120)

  Needs IDP_SECRET_KEY and DATABASE_URL. Exit code: 0 all are linked, 1 some failed or it ended early, 2 it did not begin.`;

/** How many of those who failed are told by id. */
const TOLD = 50;

function dateOf(since: string): Date {
  const date = new Date(since);
  if (!/^\d{4}-\d\d-\d\d/.test(since) || Number.isNaN(date.getTime()))
    throw new UsageError('--since is a date, such as 2026-11-01');
  return date;
}

/** Tells runs apart that must not go on with each other's state. */
function nameOfRun(secretKey: string, databaseUrl: string, since: Date | undefined): string {
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
      patience: { type: 'string', default: '120' },
    },
  });
  const since = values.since === undefined ? undefined : dateOf(values.since);
  const dryRun = values['dry-run'];
  const seconds = secondsOf(values.patience, 'patience');
  const { IDP_SECRET_KEY, DATABASE_URL } = parseEnvironmentSubset(
    z.pick(variables, { IDP_SECRET_KEY: true, DATABASE_URL: true, CLERK_API_URL: true }),
  );
  const file = stateFile(values.state, nameOfRun(IDP_SECRET_KEY, DATABASE_URL, since));
  const kept = dryRun ? undefined : file.read();
  const figures: State['figures'] = kept?.figures ?? { seen: 0, linked: 0, alreadyLinked: 0, failed: 0 };
  const seenBefore = figures.seen;

  const progress = showProgress();
  const { say } = progress;
  const patience = { seconds, onWait: (why: string, wait: number) => say(`${why}; again in ${wait} s`) };
  if (kept) say(`going on behind ${figures.seen} users; ${values.state} says so`);
  // The provider counts all of its users, and none since a time.
  if (since === undefined) progress.expect((await retry(patience, countUsers)) - seenBefore);

  const ended = await (async () => {
    try {
      for await (const step of backfill({ from: kept?.cursor ?? since, dryRun, patience })) {
        for (const { id, why } of step.failed.slice(0, Math.max(TOLD - figures.failed, 0)))
          say(`failed: ${shown(id).slice(0, 80)}: ${why}`);
        figures.seen += step.seen;
        figures.linked += step.linked;
        figures.alreadyLinked += step.alreadyLinked;
        figures.failed += step.failed.length;
        if (!dryRun) file.write({ cursor: step.cursor, figures });
        progress.at(figures.seen - seenBefore);
      }
      return true;
    } catch (error) {
      say(`Ended early: ${inWords(error)}`);
      return false;
    }
  })();
  progress.end();
  const { seen, linked, alreadyLinked, failed } = figures;
  process.stdout.write(
    `${seen} seen, ${linked} ${dryRun ? 'to link' : 'linked'}, ${alreadyLinked} already linked, ${failed} failed\n`,
  );
  if (ended && !dryRun) file.remove();
  if (!ended) process.stderr.write('The same command goes on where this one stopped\n');
  return ended && failed === 0 ? 0 : 1;
}

await runCommand(USAGE, main);
