import { createInterface } from 'node:readline/promises';
import * as z from 'zod/mini';
import { InternalUserId } from '#lib/api/schemas';
import { parseEnvironmentSubset, variables } from '#lib/base/env';
import { safeMessage, UsageError } from '#lib/base/errors';
import { retry } from '#lib/base/retry';
import type { Kind } from '#lib/core/ports';
import { readCachedId } from '#lib/ids/cache';
import { forgottenUntil } from '#lib/ids/store';
import { mainProvider } from '#lib/main-provider';
import { type ForgetDueStep, type ForgetResult, forget, forgetDue, remember } from '#lib/operator/forget';
import { type Change, newRun, recordRun } from '#lib/operator/history';
import { directory, holdersOf } from '#lib/operator/paginate';
import { deletionDueAt, unfinishedIds } from '#lib/operator/pending-deletions';
import { waitForLongQueries } from '#lib/storage/database';
import { providers } from '#providers';
import { type ExitCode, print, shown } from '../command';
import { ASKED, findAtProvider, linkOf, NOUNS, parseVariables, RETRY, VARIABLES } from './one-link';

const FORGET_VARIABLES = z.extend(VARIABLES, z.pick(variables, { FORGOTTEN_USERS_DAYS: true }).shape);

/** `npm run users -- remember`, `npm run tenants -- remember` */
export async function rememberOne(kind: Kind, id: string, change: Change): Promise<ExitCode> {
  parseEnvironmentSubset(z.pick(variables, { DATABASE_URL: true }));
  const { isCancelled, isDeleted } = await remember(kind, id, change);
  if (isCancelled) print(`The pending deletion of this ${NOUNS[kind]} is cancelled.`);
  if (isDeleted) print(`The entry is deleted. Any registration links this ${NOUNS[kind]} again.`);
  if (isCancelled || isDeleted) return 0;
  print('There is no entry for this id. Pass the id at the identity provider, not the internal id.');
  return 1;
}

/** Returns one line for each result. docs/users.md explains them. */
const forgetMessages = (noun: string): Readonly<Record<ForgetResult, string>> => ({
  forgotten: `This ${noun} no longer has a row or a cached id.`,
  relinked: `The row was deleted, but the ${noun} has been linked again. Delete it at the provider, wait a minute, and repeat this command.`,
  uncertain:
    'The row is deleted. The cache does not respond, so the cached id may exist until it expires. Repeat this command later.',
});

async function isConfirmed(kind: Kind): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageError('Not a terminal: pass --yes.');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question(`Delete this ${NOUNS[kind]}? This cannot be undone. (yes/no) `);
  terminal.close();
  return answer.trim() === 'yes';
}

/** Returns false if nothing in the database and the cache belongs to an id of the provider without a row. */
async function hasEntry(kind: Kind, id: string): Promise<boolean> {
  if ((await forgottenUntil(kind, [id])).size > 0 || (await deletionDueAt(kind, [id]))) return true;
  if ((await unfinishedIds(kind, [id])).length > 0) return true;
  return (await readCachedId(kind, id)).outcome !== 'miss';
}

/** Removes the internal id that `publish` has set as the `external_id`. Returns false if Clerk does not do so. */
async function removeExternalId(id: string): Promise<boolean> {
  const failure = await retry(RETRY, async () => (await directory()).setExternalId(id, null)).catch(
    safeMessage,
  );
  const isRemoved = failure === undefined || failure === 404;
  print(
    isRemoved
      ? 'The external_id at Clerk, which was the internal id, is removed.'
      : `The external_id at Clerk is still the internal id (${failure}). Remove it, or an adoption uses it again.`,
  );
  return isRemoved;
}

/** `npm run users -- forget`, `npm run tenants -- forget` */
export async function forgetOne(
  kind: Kind,
  id: string,
  { yes, ...change }: Change & { readonly yes?: boolean },
): Promise<ExitCode> {
  waitForLongQueries();
  const { FORGOTTEN_USERS_DAYS } = parseVariables(FORGET_VARIABLES);
  const noun = NOUNS[kind];
  const link = await linkOf(kind, id);
  if (link === undefined && InternalUserId.safeParse(id).success)
    throw new UsageError(`No ${noun} has this internal id. Pass the id at the identity provider.`);
  // An earlier run may have deleted the row, and may have left a cached id or a pending deletion.
  if (link === undefined && !(await hasEntry(kind, id))) {
    print('Nothing was deleted, because there is neither a row nor an entry for this id.');
    return 1;
  }
  const providerId = link?.providerId ?? id;
  print(`internal id    ${link?.internalId ?? 'none: not linked'}`);
  print(`provider's id  ${shown(providerId)}`);
  const holder = (await holdersOf(kind, [providerId], providers, RETRY)).get(providerId);
  const listed = holder === mainProvider.name ? await findAtProvider(kind, providerId) : undefined;
  print(
    holder
      ? `${holder} still has this ${noun}. Delete it there first, unless you want a new internal id for it (docs/users.md).`
      : `There is no such ${noun} at ${ASKED || 'a provider with `has`'}. If it was deleted within the last minute, wait until the tokens have expired.`,
  );
  print(`FORGOTTEN_USERS_DAYS is ${FORGOTTEN_USERS_DAYS} for this command.`);
  if (!yes && !(await isConfirmed(kind))) {
    print('Nothing was deleted.');
    return 1;
  }
  const result = await forget(kind, providerId, FORGOTTEN_USERS_DAYS, change);
  print(forgetMessages(noun)[result]);
  const isPublished = link !== undefined && listed?.externalId === link.internalId;
  if (isPublished && !(await removeExternalId(providerId))) return 1;
  return result === 'forgotten' ? 0 : 1;
}

/** Maps each result of a due deletion to its outcome and the reason. A `pending` deletion is repeated by a later run. */
const DUE_OUTCOMES: Readonly<
  Record<ForgetDueStep['result'], readonly ['forgotten' | 'kept' | 'pending', reason: string]>
> = {
  forgotten: ['forgotten', ''],
  renewed: [
    'forgotten',
    ', and the id was linked again after `remember`, `adopt`, `relink` or a later sign-in',
  ],
  restored: ['kept', ', because this id exists again at '],
  moved: ['kept', ', because a relink has replaced this id with another one'],
  postponed: ['kept', ', because the deletion was cancelled or is due later'],
  relinked: ['pending', ', because the id has been linked again'],
  uncertain: ['pending', ', because the cache does not respond'],
  failed: ['pending', ', because of an error'],
};

/**
 * `npm run users -- due`, `npm run tenants -- due`. Prints a receipt for each id, which contains the internal id but not the
 * provider's id: only the first digits of its hash, as stored in `forgotten_users`.
 */
export async function forgetAllDue(kind: Kind, options: Change): Promise<ExitCode> {
  waitForLongQueries();
  const { FORGOTTEN_USERS_DAYS } = parseVariables(FORGET_VARIABLES);
  const change = { ...options, run: newRun() };
  const figures = { forgotten: 0, kept: 0, pending: 0 };
  const steps = forgetDue(kind, FORGOTTEN_USERS_DAYS, change, { seconds: 30 }, undefined, providers);
  for await (const step of steps) {
    const [outcome, reason] = DUE_OUTCOMES[step.result];
    const cause = step.result === 'failed' ? `: ${safeMessage(step.error)}` : '';
    const holder = step.result === 'restored' ? step.holder : '';
    const ids = `${step.idHash} (${step.internalId ?? 'not linked'})`;
    print(`${new Date().toISOString()} ${ids} ${outcome}${reason}${holder}${cause}`);
    figures[outcome] += 1;
  }
  const { forgotten, kept, pending } = figures;
  print(`${forgotten + kept + pending} due, ${forgotten} forgotten, ${kept} kept, ${pending} pending`);
  if (forgotten + kept + pending > 0) await retry(RETRY, () => recordRun(kind, 'due', change, figures));
  return pending === 0 ? 0 : 1;
}
