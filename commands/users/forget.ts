import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { retry } from '#lib/concurrency/retry';
import { parseEnvironmentSubset } from '#lib/env';
import { listUsersById } from '#lib/idp/backend-api';
import { type Forgotten, forget } from '#lib/users/forget';
import { type ExitCode, runCommand, shown, UsageError } from '../command';
import { linkOf, onlyId, VARIABLES } from './one-user';

const USAGE = `npm run users:forget -- <internal id or identity provider's id> [--yes]

  Deletes the link of one user: cache entry and row, and what refers to the row by ON DELETE CASCADE. Asks first.
  --yes   does not ask, for where nobody can answer

  Needs IDP_SECRET_KEY, KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may delete from users.
  Exit code: 0 forgotten, 1 not, or not for sure, 2 it did not begin.`;

const PATIENCE = { seconds: 5 };

const SAID: Readonly<Record<Forgotten, string>> = {
  forgotten: 'Neither a row nor a cached id of this user is left.',
  refused:
    'Nothing is deleted: another table refers to this user by a foreign key that forbids it. Delete those rows first, or make the key ON DELETE CASCADE or SET NULL (docs/users.md, "To forget somebody").',
  back: 'The row was deleted, and the user is back with a new internal id: somebody with a live session made a request, or the id was registered again. Delete the user at the provider, wait until the tokens have run out, and run this again.',
  uncertain:
    'The row is deleted. The cache does not answer: its entry may go on until its time is over (10 minutes, or USER_ID_CACHE_TTL_SECONDS). Run this again when the cache is back.',
};

async function confirmed(): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageError('Nobody can answer here: say --yes.');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await terminal.question('Delete this user? There is no way back. (yes/no) ');
  terminal.close();
  return answer.trim() === 'yes';
}

async function main(): Promise<ExitCode> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { yes: { type: 'boolean', default: false } },
  });
  const id = onlyId(positionals);
  parseEnvironmentSubset(VARIABLES);
  const link = await linkOf(id);
  // Where the row is gone already, a cached id may be left.
  const { userId, identityProviderUserId } = link ?? { userId: undefined, identityProviderUserId: id };
  process.stdout.write(
    `internal id    ${userId ?? 'none: not linked'}\nprovider's id  ${shown(identityProviderUserId)}\n`,
  );
  const [atProvider] = await retry(PATIENCE, () => listUsersById([identityProviderUserId]));
  process.stdout.write(
    atProvider
      ? 'The identity provider still has this user: the next request makes a new link, with a new internal id. To forget somebody for good, delete the user there first, wait until the tokens have run out (60 s, unless you set more), then run this.\n'
      : 'The identity provider has no such user. If it was deleted there within the last minute, wait until its tokens have run out.\n',
  );
  if (!values.yes && !(await confirmed())) {
    process.stdout.write('Nothing is deleted.\n');
    return 1;
  }
  const came = await forget(identityProviderUserId, userId);
  process.stdout.write(`${SAID[came]}\n`);
  return came === 'forgotten' ? 0 : 1;
}

await runCommand(USAGE, main);
