import * as z from 'zod/mini';
import { events } from '#events';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { backfill } from '#lib/users/backfill';
import { reconcile } from '#lib/users/reconcile';
import { type ExitCode, safeMessage, shown, UsageError } from '../command';
import { showProgress } from '../progress';

const VARIABLES = z.pick(variables, { IDP_SECRET_KEY: true, DATABASE_URL: true, CLERK_API_URL: true });

/** `npm run users -- backfill` */
export async function backfillUsers(options: {
  readonly since?: Date;
  readonly dryRun?: boolean;
  readonly replay?: boolean;
  readonly retrySeconds: number;
}): Promise<ExitCode> {
  const replay = options.replay ? events['user.updated'] : undefined;
  if (options.replay && !replay) throw new UsageError('events/index.ts has no handler of user.updated.');
  parseEnvironmentSubset(VARIABLES);
  const { say, at, end, retryOptions } = showProgress('users', options.retrySeconds);
  const figures = { seen: 0, linked: 0, alreadyLinked: 0, forgotten: 0, failed: 0 };
  let { since } = options;
  let isComplete = false;
  try {
    for await (const step of backfill({ ...options, since, replay, retryOptions })) {
      for (const { id, reason } of step.failed) say(`failed: ${shown(id).slice(0, 80)}: ${reason}`);
      figures.seen += step.seen;
      figures.linked += step.linked;
      figures.alreadyLinked += step.alreadyLinked;
      figures.forgotten += step.forgotten;
      figures.failed += step.failed.length;
      since = step.continueSince;
      at(figures.seen, `, continue with --since ${since.toISOString()}`);
    }
    isComplete = true;
  } catch (error) {
    say(`Stopped early: ${safeMessage(error)}`);
  }
  end();
  const { seen, linked, alreadyLinked, forgotten, failed } = figures;
  process.stdout.write(
    `${seen} seen, ${linked} ${options.dryRun ? 'to link' : 'linked'}, ${alreadyLinked} already linked, ${forgotten} forgotten, ${failed} failed\n`,
  );
  if (isComplete) return failed === 0 ? 0 : 1;
  const rest = `${replay ? ' --replay' : ''}${since === undefined ? '' : ` --since ${since.toISOString()}`}`;
  process.stderr.write(`To continue: npm run users -- backfill${rest}\n`);
  return 1;
}

/** `npm run users -- check` */
export async function checkUsers(options: {
  readonly ids?: boolean;
  readonly retrySeconds: number;
}): Promise<ExitCode> {
  parseEnvironmentSubset(VARIABLES);
  const { at, end, retryOptions } = showProgress('users and rows', options.retrySeconds);
  const printId = (line: string) => {
    if (!options.ids) return;
    end();
    process.stdout.write(`${line}\n`);
  };
  const figures = { providerUsers: 0, rows: 0, notLinked: 0, forgotten: 0, notAtProvider: 0 };
  for await (const page of reconcile(retryOptions)) {
    figures.providerUsers += page.providerUsers;
    figures.rows += page.rows;
    figures.forgotten += page.forgotten;
    figures.notLinked += page.notLinked.length;
    figures.notAtProvider += page.notAtProvider.length;
    for (const id of page.notLinked) printId(`not linked: ${shown(id)}`);
    for (const { userId, identityProviderUserId } of page.notAtProvider)
      printId(`not at the provider: ${shown(identityProviderUserId)} (${userId})`);
    at(figures.providerUsers + figures.rows);
  }
  end();
  const { providerUsers, rows, notLinked, forgotten, notAtProvider } = figures;
  process.stdout.write(
    `${providerUsers} users at the provider, ${notLinked} of them not linked, ${forgotten} forgotten\n${rows} rows, ${notAtProvider} of them not at the provider\n`,
  );
  return notLinked + notAtProvider === 0 ? 0 : 1;
}
