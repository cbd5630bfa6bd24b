import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import * as z from 'zod/mini';
import { InternalUserId } from '#lib/api/schemas';
import { retry } from '#lib/concurrency/retry';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { listUsersById } from '#lib/idp/backend-api';
import { type ForgetResult, forget } from '#lib/users/forget';
import { cancelDeletion } from '#lib/users/pending-deletions';
import { type ExitCode, runCommand, shown, UsageError } from '../command';
import { forgetDueUsers } from './due';
import { linkOf, onlyId, VARIABLES } from './one-user';

const USAGE = `npm run users:forget -- <internal id or id at the identity provider> [--yes]
       npm run users:forget -- --due

  Deletes the cache entry and the row of one user, and the rows of other tables that refer to the user by ON DELETE CASCADE.
  For the next FORGOTTEN_USERS_DAYS days (default 30), only a session token that is issued after the deletion links the user
  again. With 0 days, any registration links the user again. Asks for confirmation.
  --yes   does not ask for confirmation
  --due   deletes all users whose deletion was scheduled by an event and is now due (docs/users.md). Does not ask for
          confirmation. Does not delete a user if the provider has the user now. Prints a receipt for each user.

  Needs IDP_SECRET_KEY, KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may write the tables users,
  forgotten_users and pending_deletions.
  Exit code: 0 deleted, 1 not deleted, linked again or uncertain, 2 the command did not start.`;

const FORGET_VARIABLES = z.extend(VARIABLES, z.pick(variables, { FORGOTTEN_USERS_DAYS: true }).shape);
const RETRY = { seconds: 5 };

const MESSAGES: Readonly<Record<ForgetResult, string>> = {
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

async function main(): Promise<ExitCode> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { yes: { type: 'boolean', default: false }, due: { type: 'boolean', default: false } },
  });
  if (values.due) {
    if (positionals.length > 0) throw new UsageError('Pass an id or --due, not both.');
    return forgetDueUsers(parseEnvironmentSubset(FORGET_VARIABLES).FORGOTTEN_USERS_DAYS);
  }
  const id = onlyId(positionals);
  const { FORGOTTEN_USERS_DAYS } = parseEnvironmentSubset(FORGET_VARIABLES);
  const link = await linkOf(id);
  if (link === undefined && InternalUserId.safeParse(id).success)
    throw new UsageError('No user has this internal id. Pass the id at the identity provider.');
  // If the user has no row, continues with the given id, because the cache may still contain an entry.
  const identityProviderUserId = link?.identityProviderUserId ?? id;
  process.stdout.write(
    `internal id    ${link?.userId ?? 'none: not linked'}\nprovider's id  ${shown(identityProviderUserId)}\n`,
  );
  const [atProvider] = await retry(RETRY, () => listUsersById([identityProviderUserId]));
  process.stdout.write(
    atProvider
      ? 'The identity provider still has this user. A session token that is issued after the deletion creates a new link with a new internal id. To delete the user permanently, first delete the user at the provider, wait until the tokens have expired (60 s by default), and run this command again.\n'
      : 'The identity provider has no such user. If the user was deleted at the provider within the last minute, wait until the tokens have expired before you continue.\n',
  );
  process.stdout.write(`FORGOTTEN_USERS_DAYS is ${FORGOTTEN_USERS_DAYS} for this command.\n`);
  if (!values.yes && !(await isConfirmed())) {
    process.stdout.write('Nothing was deleted.\n');
    return 1;
  }
  const result = await forget(identityProviderUserId, FORGOTTEN_USERS_DAYS);
  process.stdout.write(`${MESSAGES[result]}\n`);
  if (result === 'forgotten') await cancelDeletion(identityProviderUserId);
  return result === 'forgotten' ? 0 : 1;
}

await runCommand(USAGE, main);
