import * as z from 'zod/mini';
import { events } from '#events';
import type { RetryOptions } from '#lib/concurrency/retry';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { backfill } from '#lib/users/backfill';
import { adopt, publish, type UserResult } from '#lib/users/external-ids';
import { reconcile } from '#lib/users/reconcile';
import { type ExitCode, safeMessage, shown, UsageError } from '../command';
import { showProgress } from '../progress';

const VARIABLES = z.pick(variables, { IDP_SECRET_KEY: true, DATABASE_URL: true, CLERK_API_URL: true });

interface Options {
  readonly dryRun?: boolean;
  readonly retrySeconds: number;
}

/** Result for one page of users. */
interface Page {
  /** Numbers of users by outcome. */
  readonly counts: Readonly<Record<string, number>>;
  /** One line for each user that needs a decision of the operator. */
  readonly problems: readonly string[];
  /** How to continue if the run ends after this page. */
  readonly remedy?: string;
}

/**
 * Runs a command that reads users page by page. Shows the progress, and prints the problems with `print`. Then prints a line with
 * the sums for each list of outcomes in `summary`. The first outcome of a list is the number of all users. An error ends the run
 * early, and is printed with a remedy. Returns 1 after a problem or an error.
 */
async function runInBulk(
  summary: readonly (readonly string[])[],
  { retrySeconds }: Options,
  readPages: (retryOptions: RetryOptions) => AsyncIterable<Page>,
  print?: (problem: string) => void,
): Promise<ExitCode> {
  parseEnvironmentSubset(VARIABLES);
  const { at, say, end, retryOptions } = showProgress('users', retrySeconds);
  const sums = new Map<string, number>();
  const sumOf = (outcome = '') => sums.get(outcome) ?? 0;
  let remedy = 'Run the same command again';
  let exitCode: ExitCode = 0;
  let isComplete = false;
  try {
    for await (const page of readPages(retryOptions)) {
      for (const [outcome, count] of Object.entries(page.counts)) sums.set(outcome, sumOf(outcome) + count);
      for (const problem of page.problems) (print ?? say)(problem);
      if (page.problems.length > 0) exitCode = 1;
      remedy = page.remedy ?? remedy;
      const done = summary.reduce((sum, [first]) => sum + sumOf(first), 0);
      at(done, page.remedy && `. ${page.remedy}`);
    }
    isComplete = true;
  } catch (error) {
    say(`Stopped early: ${safeMessage(error)}`);
  }
  end();
  for (const outcomes of summary)
    process.stdout.write(`${outcomes.map((outcome) => `${sumOf(outcome)} ${outcome}`).join(', ')}\n`);
  if (isComplete) return exitCode;
  process.stderr.write(`${remedy}\n`);
  return 1;
}

const describe = ({ id, outcome, reason = '' }: UserResult) =>
  `${outcome}: ${shown(id).slice(0, 80)}: ${reason}`;

/** `npm run users -- backfill` */
export async function backfillUsers(
  options: Options & { readonly since?: Date; readonly replay?: boolean },
): Promise<ExitCode> {
  const replay = options.replay ? events['user.updated'] : undefined;
  if (options.replay && !replay) throw new UsageError('events/index.ts has no handler of user.updated.');
  const linked = options.dryRun ? 'to link' : 'linked';
  const summary = ['seen', linked, 'already linked', 'forgotten', 'failed'];
  return runInBulk([summary], options, async function* (retryOptions) {
    for await (const { failed, continueSince, ...step } of backfill({ ...options, replay, retryOptions })) {
      const { seen, alreadyLinked, forgotten } = step;
      const continueWith = `${replay ? '--replay ' : ''}--since ${continueSince.toISOString()}`;
      yield {
        counts: {
          seen,
          [linked]: step.linked,
          'already linked': alreadyLinked,
          forgotten,
          failed: failed.length,
        },
        problems: failed.map((user) => describe({ ...user, outcome: 'failed' })),
        remedy: `To continue: npm run users -- backfill ${continueWith}`,
      };
    }
  });
}

/** `npm run users -- check` */
export function checkUsers(options: Options & { readonly ids?: boolean }): Promise<ExitCode> {
  const summary = [
    ['users at the provider', 'of them not linked', 'forgotten'],
    ['rows', 'of them not at the provider'],
  ];
  const print = (line: string) => void (options.ids && process.stdout.write(`${line}\n`));
  async function* readPages(retryOptions: RetryOptions) {
    for await (const { providerUsers, rows, forgotten, notLinked, notAtProvider } of reconcile(
      retryOptions,
    )) {
      const [missing, gone] = [notLinked.length, notAtProvider.length];
      yield {
        counts: {
          ...{ 'users at the provider': providerUsers, 'of them not linked': missing, forgotten },
          ...{ rows, 'of them not at the provider': gone },
        },
        problems: [
          ...notLinked.map((id) => `not linked: ${shown(id)}`),
          ...notAtProvider.map(
            ({ userId, ...link }) => `not at the provider: ${shown(link.identityProviderUserId)} (${userId})`,
          ),
        ],
      };
    }
  }
  return runInBulk(summary, options, readPages, print);
}

/** Runs `adopt` or `publish`. A result with a reason is a problem. */
const runWithResults = (
  outcomes: readonly string[],
  options: Options,
  run: typeof adopt | typeof publish,
): Promise<ExitCode> =>
  runInBulk([['seen', ...outcomes]], options, async function* (retryOptions) {
    for await (const results of run(retryOptions, options.dryRun)) {
      const counts: Record<string, number> = { seen: results.length };
      for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1;
      yield { counts, problems: results.filter(({ reason }) => reason !== undefined).map(describe) };
    }
  });

/** `npm run users -- adopt` */
export const adoptUsers = (options: Options): Promise<ExitCode> =>
  runWithResults(
    [
      options.dryRun ? 'to adopt' : 'adopted',
      ...['already linked', 'without external_id', 'forgotten', 'not adopted'],
    ],
    options,
    adopt,
  );

/** `npm run users -- publish` */
export const publishUsers = (options: Options): Promise<ExitCode> =>
  runWithResults(
    [
      options.dryRun ? 'to publish' : 'published',
      ...['already published', 'not linked', 'forgotten', 'kept', 'failed'],
    ],
    options,
    publish,
  );
