import { parseArgs } from 'node:util';
import { retry } from '#lib/concurrency/retry';
import { parseEnvironmentSubset } from '#lib/env';
import { listUsersById } from '#lib/idp/backend-api';
import { readCachedUserId } from '#lib/linking/user-id-cache';
import { type ExitCode, runCommand, shown } from '../command';
import { linkOf, onlyId, VARIABLES } from './one-user';

const USAGE = `npm run users:show -- <internal id or identity provider's id>

  Tells what is known of one user: the link, the cache entry, and whether the identity provider has the user.
  Needs IDP_SECRET_KEY, DATABASE_URL, KV_REST_API_URL and KV_REST_API_TOKEN. Exit code: 0 the user is linked, 1 not, or a
  part fails, 2 it did not begin.`;

const PATIENCE = { seconds: 5 };

/** When a UUID v7 was made: its first 48 bits. */
function madeAt(userId: string): string {
  const milliseconds = Number.parseInt(userId.replaceAll('-', '').slice(0, 12), 16);
  return userId[14] === '7' ? new Date(milliseconds).toISOString() : 'unknown: the row was imported';
}

async function cacheLine(identityProviderUserId: string, userId: string | undefined): Promise<string> {
  let answer = await readCachedUserId(identityProviderUserId);
  // Its bound is short, and the first call opens the connection as well.
  for (let again = 0; again < 3 && answer.outcome === 'fault'; again += 1)
    answer = await readCachedUserId(identityProviderUserId);
  if (answer.outcome !== 'hit') return answer.outcome === 'miss' ? 'no entry' : 'does not answer';
  return answer.userId === userId ? 'holds this id' : `HOLDS ANOTHER ID: ${answer.userId}`;
}

async function providerLine(identityProviderUserId: string): Promise<string> {
  const [user] = await retry(PATIENCE, () => listUsersById([identityProviderUserId]));
  return user ? `has this user since ${new Date(user.createdAt).toISOString()}` : 'has no such user';
}

async function main(): Promise<ExitCode> {
  const id = onlyId(parseArgs({ allowPositionals: true, options: {} }).positionals);
  parseEnvironmentSubset(VARIABLES);
  const link = await linkOf(id);
  const identityProviderUserId = link?.identityProviderUserId ?? id;
  const lines = [
    ['internal id', link?.userId ?? 'none: not linked'],
    ...(link ? [['linked', madeAt(link.userId)]] : []),
    ["provider's id", shown(identityProviderUserId)],
    ['cache', await cacheLine(identityProviderUserId, link?.userId)],
    ['provider', await providerLine(identityProviderUserId)],
  ];
  for (const [name = '', value] of lines) process.stdout.write(`${name.padEnd(15)}${value}\n`);
  return link ? 0 : 1;
}

await runCommand(USAGE, main);
