import { parseArgs } from 'node:util';
import { retry, TransientError } from '#lib/concurrency/retry';
import { parseEnvironmentSubset } from '#lib/env';
import { listUsersById } from '#lib/idp/backend-api';
import { forgottenUntil } from '#lib/linking/forgotten';
import { readCachedUserId } from '#lib/linking/user-id-cache';
import { asTransientError } from '#lib/users/database-error';
import { deletionDueAt } from '#lib/users/pending-deletions';
import { type ExitCode, runCommand, shown } from '../command';
import { linkOf, onlyId, VARIABLES } from './one-user';

const USAGE = `npm run users:show -- <internal id or id at the identity provider>

  Shows the link and the cache entry of one user, and whether the identity provider has the user.
  Needs IDP_SECRET_KEY, DATABASE_URL, KV_REST_API_URL and KV_REST_API_TOKEN.
  Exit code: 0 the user is linked, 1 the user is not linked or an error occurred, 2 the command did not start.`;

const RETRY = { seconds: 5 };
/** Time limit for the retries of a cache call. The first call may exceed its timeout, because it also opens the connection. */
const CACHE_RETRY = { seconds: 3 };

/** Returns the creation time of a link. The first 48 bits of a UUID v7 contain it, in milliseconds since 1970. */
function createdAt(userId: string): string {
  const milliseconds = Number.parseInt(userId.replaceAll('-', '').slice(0, 12), 16);
  return userId[14] === '7'
    ? new Date(milliseconds).toISOString()
    : 'unknown, because the internal id is not a UUID v7 (imported row)';
}

async function cacheLine(identityProviderUserId: string, userId: string | undefined): Promise<string> {
  const cached = await retry(CACHE_RETRY, async () => {
    const result = await readCachedUserId(identityProviderUserId);
    if (result.outcome === 'error') throw new TransientError('The cache does not respond');
    return result;
  }).catch(() => undefined);
  if (cached === undefined) return 'does not respond';
  if (cached.outcome !== 'hit') return 'no entry';
  if (cached.userId === userId) return 'contains the internal id';
  return `CONTAINS ${userId === undefined ? 'AN ID, BUT THE USER IS NOT LINKED' : 'ANOTHER ID'}: ${cached.userId}`;
}

async function providerLine(identityProviderUserId: string): Promise<string> {
  const [user] = await retry(RETRY, () => listUsersById([identityProviderUserId]));
  return user ? `has this user, created at ${new Date(user.createdAt).toISOString()}` : 'has no such user';
}

async function main(): Promise<ExitCode> {
  const id = onlyId(parseArgs({ allowPositionals: true, options: {} }).positionals);
  parseEnvironmentSubset(VARIABLES);
  const link = await linkOf(id);
  const identityProviderUserId = link?.identityProviderUserId ?? id;
  const until = (await asTransientError(forgottenUntil([identityProviderUserId]))).get(
    identityProviderUserId,
  );
  const dueAt = await deletionDueAt(identityProviderUserId);
  const lines = [
    ['internal id', link?.userId ?? 'none: not linked'],
    ...(link ? [['linked', createdAt(link.userId)]] : []),
    ["provider's id", shown(identityProviderUserId)],
    ...(link?.previousIds ?? []).map((previous) => [
      'previous id',
      `${shown(previous.identityProviderUserId)} until ${previous.expiresAt.toISOString()}`,
    ]),
    ...(until === undefined ? [] : [['forgotten', `until ${new Date(until).toISOString()}`]]),
    ...(dueAt === undefined ? [] : [['deletion', `due at ${dueAt.toISOString()}`]]),
    ['cache', await cacheLine(identityProviderUserId, link?.userId)],
    ['provider', await providerLine(identityProviderUserId)],
  ];
  for (const [name = '', value] of lines) process.stdout.write(`${name.padEnd(15)}${value}\n`);
  return link ? 0 : 1;
}

await runCommand(USAGE, main);
