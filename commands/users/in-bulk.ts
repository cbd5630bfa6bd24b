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

/** How a command reports its steps, which are the results of one page of users each. */
interface Report<Step> {
  /** Lines of the summary. Each maps fields of a step, which are numbers or lists, to the words for their sum. */
  readonly summary: ReadonlyArray<Readonly<Partial<Record<keyof Step, string>>>>;
  /** One line for each user that needs a decision of the operator. */
  readonly problems: (step: Step) => readonly string[];
  /** Prints a problem. The default is standard error. */
  readonly print?: (problem: string) => void;
  /** How to continue if the run ends after this step. */
  readonly remedy?: (step: Step) => string;
}

const sizeOf = (value: unknown) => (Array.isArray(value) ? value.length : Number(value));

/**
 * Runs a command that reads users page by page. Shows the progress, and prints the problems and the summary. An error ends the
 * run early, and is printed with a remedy. Returns 1 after a problem or an error.
 */
async function runInBulk<Step extends object>(
  { retrySeconds }: Options,
  readSteps: (retryOptions: RetryOptions) => AsyncIterable<Step>,
  { summary, problems, print, remedy }: Report<Step>,
): Promise<ExitCode> {
  parseEnvironmentSubset(VARIABLES);
  const { at, say, end, retryOptions } = showProgress('users', retrySeconds);
  const sums = new Map<string, number>();
  const sumOf = (field = '') => sums.get(field) ?? 0;
  let continueWith = 'Run the same command again';
  let exitCode: ExitCode = 0;
  let isComplete = false;
  try {
    for await (const step of readSteps(retryOptions)) {
      for (const [field, value] of Object.entries(step)) sums.set(field, sumOf(field) + sizeOf(value));
      for (const problem of problems(step)) {
        end();
        (print ?? say)(problem);
        exitCode = 1;
      }
      continueWith = remedy?.(step) ?? continueWith;
      const done = summary.reduce((sum, line) => sum + sumOf(Object.keys(line)[0]), 0);
      at(done, remedy && `. ${continueWith}`);
    }
    isComplete = true;
  } catch (error) {
    say(`Stopped early: ${safeMessage(error)}`);
  }
  end();
  for (const line of summary) {
    const parts = Object.entries(line).map(([field, words]) => `${sumOf(field)} ${words}`);
    process.stdout.write(`${parts.join(', ')}\n`);
  }
  if (isComplete) return exitCode;
  process.stderr.write(`${continueWith}\n`);
  return 1;
}

const describe = (outcome: string, { id, reason = '' }: Pick<UserResult, 'id' | 'reason'>) =>
  `${outcome}: ${shown(id).slice(0, 80)}: ${reason}`;

/** `npm run users -- backfill` */
export async function backfillUsers(
  options: Options & { readonly since?: Date; readonly replay?: boolean },
): Promise<ExitCode> {
  const replay = options.replay ? events['user.updated'] : undefined;
  if (options.replay && !replay) throw new UsageError('events/index.ts has no handler of user.updated.');
  const [linked, alreadyLinked] = [options.dryRun ? 'to link' : 'linked', 'already linked'];
  return runInBulk(options, (retryOptions) => backfill({ ...options, replay, retryOptions }), {
    summary: [{ seen: 'seen', linked, alreadyLinked, forgotten: 'forgotten', failed: 'failed' }],
    problems: ({ failed }) => failed.map((user) => describe('failed', user)),
    remedy: ({ continueSince }) =>
      `To continue: npm run users -- backfill ${replay ? '--replay ' : ''}--since ${continueSince.toISOString()}`,
  });
}

/** `npm run users -- check` */
export const checkUsers = (options: Options & { readonly ids?: boolean }): Promise<ExitCode> =>
  runInBulk(options, reconcile, {
    summary: [
      { providerUsers: 'users at the provider', notLinked: 'of them not linked', forgotten: 'forgotten' },
      { rows: 'rows', notAtProvider: 'of them not at the provider' },
    ],
    problems: ({ notLinked, notAtProvider }) => [
      ...notLinked.map((id) => `not linked: ${shown(id)}`),
      ...notAtProvider.map(
        ({ userId, ...link }) => `not at the provider: ${shown(link.identityProviderUserId)} (${userId})`,
      ),
    ],
    print: (line) => void (options.ids && process.stdout.write(`${line}\n`)),
  });

/** Runs `adopt` or `publish`. A result with a reason is a problem. */
const runWithResults = (
  outcomes: readonly string[],
  options: Options,
  run: typeof adopt | typeof publish,
): Promise<ExitCode> => {
  const words = ['seen', ...outcomes];
  const readSteps = async function* (retryOptions: RetryOptions) {
    for await (const seen of run(retryOptions, options.dryRun))
      yield {
        seen,
        ...Object.fromEntries(outcomes.map((each) => [each, seen.filter(({ outcome }) => outcome === each)])),
      };
  };
  return runInBulk(options, readSteps, {
    summary: [Object.fromEntries(words.map((word) => [word, word]))],
    problems: ({ seen }) =>
      seen.flatMap((user) => (user.reason === undefined ? [] : [describe(user.outcome, user)])),
  });
};

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
