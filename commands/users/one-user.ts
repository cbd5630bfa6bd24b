import { createInterface } from 'node:readline/promises';
import * as z from 'zod/mini';
import { InternalUserId } from '#lib/api/schemas';
import { parseEnvironmentSubset, variables } from '#lib/base/env';
import { retry } from '#lib/base/retry';
import { TransientError } from '#lib/base/transient-error';
import { listUsersById, setExternalId } from '#lib/idp/backend-api';
import { readCachedId } from '#lib/linking/id-cache';
import { forgottenUntil } from '#lib/linking/links';
import { exportUser } from '#lib/users/export';
import { type ForgetResult, forget, remember } from '#lib/users/forget';
import { type ForgetDueStep, forgetDue } from '#lib/users/forget-due';
import { cancelDeletion, deletionDueAt } from '#lib/users/pending-deletions';
import { allIdsOf, findLinks, type Link } from '#lib/users/rows';
import { exportOwnTables } from '../../events/export-user';
import { type ExitCode, safeMessage, shown, UsageError } from '../command';

const VARIABLES = z.pick(variables, {
  IDP_SECRET_KEY: true,
  DATABASE_URL: true,
  KV_REST_API_URL: true,
  KV_REST_API_TOKEN: true,
  CLERK_API_URL: true,
});
const FORGET_VARIABLES = z.extend(VARIABLES, z.pick(variables, { FORGOTTEN_USERS_DAYS: true }).shape);

/** Limit for the retries of a call. The first cache call may exceed its timeout, because it also opens the connection. */
const RETRY = { seconds: 5 };

const print = (line: string) => process.stdout.write(`${line}\n`);

/**
 * Returns the link (the row of a user) with this internal id or provider's id, or undefined. Throws if the id belongs to two
 * different links.
 */
async function linkOf(eitherId: string): Promise<Link | undefined> {
  const [link, other] = await findLinks(eitherId);
  if (other !== undefined)
    throw new Error(
      "This is the internal id of user A and the provider's id of user B. Pass the provider's id of A or the internal id of B.",
    );
  return link;
}

/** Returns the creation time of a link. The first 48 bits of a UUID v7 contain it, in milliseconds since 1970. */
function createdAt(userId: string): string {
  const milliseconds = Number.parseInt(userId.replaceAll('-', '').slice(0, 12), 16);
  return userId[14] === '7'
    ? new Date(milliseconds).toISOString()
    : 'unknown, because the internal id is not a UUID v7 (imported row)';
}

async function describeCache(identityProviderUserId: string, userId: string | undefined): Promise<string> {
  const cached = await retry(RETRY, async () => {
    const result = await readCachedId('user', identityProviderUserId);
    if (result.outcome === 'error') throw new TransientError('The cache does not respond');
    return result;
  }).catch(() => undefined);
  if (cached === undefined) return 'does not respond';
  if (cached.outcome !== 'hit') return 'no entry';
  if (cached.id === userId) return 'contains the internal id';
  return `CONTAINS ${userId === undefined ? 'AN ID, BUT THE USER IS NOT LINKED' : 'ANOTHER ID'}: ${cached.id}`;
}

const findAtProvider = async (identityProviderUserId: string) =>
  (await retry(RETRY, () => listUsersById([identityProviderUserId])))[0];

/** `npm run users -- show` */
export async function showOne(id: string): Promise<ExitCode> {
  parseEnvironmentSubset(VARIABLES);
  const link = await linkOf(id);
  const providerId = link?.identityProviderUserId ?? id;
  const until = (await forgottenUntil([providerId])).get(providerId);
  const dueAt = await deletionDueAt(link ? allIdsOf(link) : [id]);
  const atProvider = await findAtProvider(providerId);
  const lines = [
    ['internal id', link?.userId ?? 'none: not linked'],
    ...(link ? [['linked', createdAt(link.userId)]] : []),
    ["provider's id", shown(providerId)],
    ...(link?.previousIds ?? []).map(({ identityProviderUserId, expiresAt }) => [
      'previous id',
      `${shown(identityProviderUserId)} until ${expiresAt.toISOString()}`,
    ]),
    ...(until === undefined ? [] : [['forgotten', `until ${new Date(until).toISOString()}`]]),
    ...(dueAt === null ? [] : [['deletion', `due at ${dueAt.toISOString()}`]]),
    ['cache', await describeCache(providerId, link?.userId)],
    [
      'provider',
      atProvider
        ? `has this user, created at ${new Date(atProvider.createdAt).toISOString()}`
        : 'has no such user',
    ],
  ];
  for (const [name = '', value] of lines) print(`${name.padEnd(15)}${value}`);
  return link ? 0 : 1;
}

/** Converts a BigInt to a string, because JSON has no BigInt type. Prisma returns a BigInt for a `bigint` column. */
const replaceBigInt = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

/** `npm run users -- export` */
export async function exportOne(id: string): Promise<ExitCode> {
  parseEnvironmentSubset(VARIABLES);
  const link = await linkOf(id);
  const user = link ?? { userId: undefined, identityProviderUserId: id, previousIds: [] };
  const exported = await retry(RETRY, () => exportUser(user, exportOwnTables));
  print(JSON.stringify(exported, replaceBigInt, 2));
  return link ? 0 : 1;
}

/** `npm run users -- remember` */
export async function rememberOne(id: string): Promise<ExitCode> {
  parseEnvironmentSubset(z.pick(variables, { DATABASE_URL: true }));
  const ids = (await findLinks(id)).map(allIdsOf).find((each) => each.includes(id));
  const isCancelled = await cancelDeletion(ids ?? [id]);
  const isDeleted = await remember(id);
  if (isCancelled) print('The pending deletion of this user is cancelled.');
  if (isDeleted) print('The entry is deleted. Any registration links this user again.');
  if (isCancelled || isDeleted) return 0;
  print('There is no entry for this id. Pass the id at the identity provider, not the internal id.');
  return 1;
}

const FORGET_MESSAGES: Readonly<Record<ForgetResult, string>> = {
  forgotten: 'This user no longer has a row or a cached id.',
  referenced:
    'Nothing was deleted, because a foreign key of another table refers to this user. Delete the rows that refer to the user first, or change the key to ON DELETE CASCADE or SET NULL (docs/users.md, "Forget a user").',
  relinked:
    'The row was deleted, but the user has been linked again with a new internal id. The user has registered with a session token that was issued after the deletion. If FORGOTTEN_USERS_DAYS is 0, any other registration also links the user again. Delete the user at the provider, wait until the tokens have expired, and run this command again.',
  uncertain:
    'The row is deleted. The cache does not respond, so the cached id may exist until it expires (10 minutes, or USER_ID_CACHE_TTL_SECONDS). Run this command again when the cache is available.',
};

async function isConfirmed(): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageError('Not a terminal: pass --yes.');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question('Delete this user? This cannot be undone. (yes/no) ');
  terminal.close();
  return answer.trim() === 'yes';
}

/** Returns false if nothing in the database and the cache belongs to an identity-provider user id without a row. */
async function hasEntry(id: string): Promise<boolean> {
  if ((await forgottenUntil([id])).size > 0 || (await deletionDueAt([id]))) return true;
  return (await readCachedId('user', id)).outcome !== 'miss';
}

/** Removes the internal id that `publish` has set as the `external_id`. Returns false if the provider does not do so. */
async function removeExternalId(id: string): Promise<boolean> {
  const failure = await retry(RETRY, () => setExternalId(id, null)).catch(safeMessage);
  const isRemoved = failure === undefined || failure === 404;
  print(
    isRemoved
      ? 'The external_id at the identity provider, which was the internal id, is removed.'
      : `The external_id at the identity provider is still the internal id (${failure}). Remove it, or an adoption uses it again.`,
  );
  return isRemoved;
}

/** `npm run users -- forget` */
export async function forgetOne(id: string, { yes }: { readonly yes?: boolean }): Promise<ExitCode> {
  const { FORGOTTEN_USERS_DAYS } = parseEnvironmentSubset(FORGET_VARIABLES);
  const link = await linkOf(id);
  if (link === undefined && InternalUserId.safeParse(id).success)
    throw new UsageError('No user has this internal id. Pass the id at the identity provider.');
  // An earlier run may have deleted the row, and may have left a cached id or a pending deletion.
  if (link === undefined && !(await hasEntry(id))) {
    print('Nothing was deleted, because there is neither a row nor an entry for this id.');
    return 1;
  }
  const identityProviderUserId = link?.identityProviderUserId ?? id;
  print(`internal id    ${link?.userId ?? 'none: not linked'}`);
  print(`provider's id  ${shown(identityProviderUserId)}`);
  const atProvider = await findAtProvider(identityProviderUserId);
  print(
    atProvider
      ? 'The identity provider still has this user. A session token that is issued after the deletion creates a new link with a new internal id. To delete the user permanently, first delete the user at the provider, wait until the tokens have expired (60 s by default), and run this command again.'
      : 'The identity provider has no such user. If the user was deleted at the provider within the last minute, wait until the tokens have expired before you continue.',
  );
  print(`FORGOTTEN_USERS_DAYS is ${FORGOTTEN_USERS_DAYS} for this command.`);
  if (!yes && !(await isConfirmed())) {
    print('Nothing was deleted.');
    return 1;
  }
  const result = await forget(identityProviderUserId, FORGOTTEN_USERS_DAYS);
  print(FORGET_MESSAGES[result]);
  const isPublished = link !== undefined && atProvider?.externalId === link.userId;
  if (isPublished && result !== 'referenced' && !(await removeExternalId(identityProviderUserId))) return 1;
  if (result !== 'forgotten') return 1;
  await cancelDeletion(link ? allIdsOf(link) : [id]);
  return 0;
}

/** Maps each result of a due deletion to its outcome and the reason. A `pending` deletion is repeated by a later run. */
const DUE_OUTCOMES: Readonly<
  Record<ForgetDueStep['result'], readonly ['forgotten' | 'kept' | 'pending', reason: string]>
> = {
  forgotten: ['forgotten', ''],
  restored: ['kept', ', because the identity provider has this user again'],
  moved: ['kept', ', because a relink has moved this user to another id'],
  referenced: ['pending', ', because a foreign key of another table refers to this user'],
  relinked: ['pending', ', because the user has been linked again'],
  uncertain: ['pending', ', because the cache does not respond'],
  failed: ['pending', ', because of an error'],
};

/**
 * `npm run users -- due`. Prints a receipt for each user, which contains the internal id but not the provider's id: only the
 * first digits of its hash, as stored in `forgotten_users`.
 */
export async function forgetDueUsers(): Promise<ExitCode> {
  const { FORGOTTEN_USERS_DAYS } = parseEnvironmentSubset(FORGET_VARIABLES);
  const figures = { forgotten: 0, kept: 0, pending: 0 };
  for await (const step of forgetDue(FORGOTTEN_USERS_DAYS, { seconds: 30 })) {
    const [outcome, reason] = DUE_OUTCOMES[step.result];
    const cause = step.result === 'failed' ? `: ${safeMessage(step.error)}` : '';
    const user = `${step.idHash} (${step.userId ?? 'not linked'})`;
    print(`${new Date().toISOString()} ${user} ${outcome}${reason}${cause}`);
    figures[outcome] += 1;
  }
  const { forgotten, kept, pending } = figures;
  print(`${forgotten + kept + pending} due, ${forgotten} forgotten, ${kept} kept, ${pending} pending`);
  return pending === 0 ? 0 : 1;
}
