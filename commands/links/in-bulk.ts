import { createReadStream } from 'node:fs';
import * as z from 'zod/mini';
import { events } from '#events';
import { parseEnvironmentSubset, variables } from '#lib/base/env';
import { safeMessage, UsageError } from '#lib/base/errors';
import { type RetryOptions, retry } from '#lib/base/retry';
import type { Kind } from '#lib/core/ports';
import { mainProvider } from '#lib/main-provider';
import { backfill } from '#lib/operator/backfill';
import { adopt, publish } from '#lib/operator/external-ids';
import { type Change, newRun, recordRun } from '#lib/operator/history';
import { providerUsers } from '#lib/operator/paginate';
import { reconcile } from '#lib/operator/reconcile';
import { type MapLine, parseMap } from '#lib/operator/relink-map';
import type { LinkResult } from '#lib/operator/rows';
import { providers } from '#providers';
import { type ExitCode, print, shown } from '../command';
import { type Progress, showProgress } from '../progress';
import { ASKED, NOUNS, parseVariables, RETRY } from './one-link';

const VARIABLES = z.pick(variables, { DATABASE_URL: true });

interface Options {
  readonly dryRun?: boolean;
  readonly retrySeconds: number;
}

/** Returns the number of users with one of these outcomes or, without outcomes, of all users. */
type Count = (...outcomes: string[]) => number;

/**
 * Counts the results of a run, and shows the progress, with how to continue after the last result. Passes each result that needs
 * a decision of the operator, one of `problems`, to `print`. An error ends the run early, which is then not complete, and is printed.
 */
export async function countResults<R extends LinkResult>(
  { at, say, end }: Progress,
  results: AsyncIterable<readonly R[]>,
  print: (result: R) => void,
  continueWith?: (last: R) => string,
) {
  const counts = new Map<string, number>();
  const count: Count = (...outcomes) =>
    (outcomes.length > 0 ? outcomes : [...counts.keys()]).reduce(
      (sum, each) => sum + (counts.get(each) ?? 0),
      0,
    );
  let [problems, isComplete] = [0, true];
  let last: R | undefined;
  try {
    for await (const page of results) {
      for (const result of page) {
        counts.set(result.outcome, count(result.outcome) + 1);
        if (result.reason === undefined) continue;
        problems += 1;
        end();
        print(result);
      }
      last = page.at(-1) ?? last;
      at(count(), last && continueWith && `. ${continueWith(last)}`);
    }
  } catch (error) {
    isComplete = false;
    say(`Stopped early: ${safeMessage(error)}`);
  }
  end();
  return { count, problems, isComplete, last };
}

const printProblem = ({ id, outcome, reason }: LinkResult) =>
  print(`${outcome}: ${shown(id).slice(0, 80)}: ${reason}`, process.stderr);

/**
 * Runs a command that handles users or organizations page by page, and prints a summary with the outcomes in this order. Returns
 * 1 after an error, and if one of them needs a decision of the operator.
 */
async function runInBulk<R extends LinkResult>(
  kind: Kind,
  { retrySeconds }: Options,
  read: (retryOptions: RetryOptions) => AsyncIterable<readonly R[]>,
  outcomes: readonly string[],
  continueWith?: (last: R) => string,
  record?: (counts: Readonly<Record<string, number>>) => Promise<unknown>,
): Promise<ExitCode> {
  const progress = showProgress(`${NOUNS[kind]}s`, retrySeconds);
  const results = read(progress.retryOptions);
  const counted = await countResults(progress, results, printProblem, continueWith);
  const { count, problems, isComplete, last } = counted;
  const figures = outcomes.map((outcome) => `${count(outcome)} ${outcome}`);
  print([`${count()} seen`, ...figures].join(', '));
  const remedy = (last && continueWith?.(last)) ?? 'Run the same command again';
  if (!isComplete) process.stderr.write(`${remedy}\n`);
  await record?.(Object.fromEntries(outcomes.map((outcome) => [outcome, count(outcome)])));
  return isComplete && problems === 0 ? 0 : 1;
}

/** Runs a command that changes links, and records the run unless it is a dry run. */
function changeInBulk(
  kind: Kind,
  operation: 'adopt' | 'publish',
  options: Options & Change,
  read: (change: Change, retryOptions: RetryOptions) => AsyncIterable<readonly LinkResult[]>,
  outcomes: readonly string[],
): Promise<ExitCode> {
  const change = { ...options, run: newRun() };
  const record = (counts: Readonly<Record<string, number>>) =>
    retry(RETRY, () => recordRun(kind, operation, change, counts));
  return runInBulk(
    kind,
    options,
    (retryOptions) => read(change, retryOptions),
    outcomes,
    undefined,
    options.dryRun ? undefined : record,
  );
}

/** `npm run users -- backfill` */
export async function backfillUsers(
  options: Options & { readonly since?: Date; readonly replay?: boolean },
): Promise<ExitCode> {
  const replay = options.replay ? events['user.updated'] : undefined;
  if (options.replay && !replay) throw new UsageError('events/index.ts has no handler of user.updated.');
  parseVariables(VARIABLES);
  return runInBulk(
    'user',
    options,
    (retryOptions) => backfill({ ...options, replay, retryOptions }),
    [options.dryRun ? 'to link' : 'linked', 'already linked', 'forgotten', 'failed'],
    ({ createdAt }) =>
      `To continue: npm run users -- backfill ${replay ? '--replay ' : ''}--since ${new Date(createdAt).toISOString()}`,
  );
}

const adopted = ({ dryRun }: Options) => (dryRun ? 'to adopt' : 'adopted');

/** `npm run users -- adopt` */
export function adoptUsers(options: Options & Change): Promise<ExitCode> {
  parseVariables(VARIABLES);
  const adoptAll = (change: Change, retryOptions: RetryOptions) =>
    adopt('user', providerUsers(retryOptions), change, retryOptions, options.dryRun);
  return changeInBulk('user', 'adopt', options, adoptAll, [
    adopted(options),
    'already linked',
    'without external_id',
    'forgotten',
    'not adopted',
  ]);
}

/** Reads a CSV file with two columns of these names. Throws a UsageError if the file cannot be read. */
export const readMapFile = (path: string, names: readonly [string, string]): Promise<MapLine[]> =>
  parseMap(createReadStream(path), names).catch((error: unknown) => {
    throw new UsageError(`Cannot read ${path}. ${safeMessage(error)}`);
  });

const PAGE = 500;

/** `npm run tenants -- adopt` */
export async function adoptTenants(options: Options & Change & { readonly map: string }): Promise<ExitCode> {
  parseEnvironmentSubset(VARIABLES);
  const lines = await readMapFile(options.map, ['organization', 'id']);
  const entries = lines.flatMap(({ oldId: id, newId: externalId, collision }) =>
    collision ? [] : [{ id, externalId }],
  );
  const pages = Array.from({ length: Math.ceil(entries.length / PAGE) }, (_, page) =>
    entries.slice(page * PAGE, (page + 1) * PAGE),
  );
  async function* adoptAll(change: Change, retryOptions: RetryOptions) {
    yield lines.flatMap(({ oldId: id, collision: reason }) =>
      reason ? [{ id, outcome: 'not adopted', reason }] : [],
    );
    yield* adopt('tenant', pages, change, retryOptions, options.dryRun);
  }
  return changeInBulk('tenant', 'adopt', options, adoptAll, [
    adopted(options),
    'already linked',
    'not adopted',
  ]);
}

/** `npm run users -- publish` */
export function publishUsers(options: Options & Change): Promise<ExitCode> {
  parseVariables(VARIABLES);
  const publishAll = (change: Change, retryOptions: RetryOptions) =>
    publish(change, retryOptions, options.dryRun);
  return changeInBulk('user', 'publish', options, publishAll, [
    options.dryRun ? 'to publish' : 'published',
    'already published',
    'not linked',
    'forgotten',
    'kept',
    'failed',
  ]);
}

/** `npm run users -- check`, `npm run tenants -- check` */
export async function checkLinks(
  kind: Kind,
  { ids, retrySeconds }: Options & { readonly ids?: boolean },
): Promise<ExitCode> {
  parseVariables(VARIABLES);
  const progress = showProgress(`${NOUNS[kind]}s`, retrySeconds);
  const results = reconcile(kind, progress.retryOptions, providers);
  const gone = `not at ${ASKED}`;
  const { count, problems, isComplete } = await countResults(progress, results, ({ id, outcome, reason }) => {
    if (ids)
      print(outcome === 'not linked' ? `${outcome}: ${shown(id)}` : `${gone}: ${shown(id)} (${reason})`);
  });
  const atProvider = count('linked', 'forgotten', 'not linked');
  if (mainProvider.directory)
    print(
      `${atProvider} ${NOUNS[kind]}s at ${mainProvider.name}, ${count('not linked')} of them not linked, ${count('forgotten')} forgotten`,
    );
  print(`${count() - atProvider} rows, ${count('not at the provider')} of them ${gone}`);
  if (!isComplete) process.stderr.write('Run the same command again\n');
  return isComplete && problems === 0 ? 0 : 1;
}
