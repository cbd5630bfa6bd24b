import { parseArgs } from 'node:util';
import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { remember } from '#lib/users/forget';
import { cancelDeletion } from '#lib/users/pending-deletions';
import { type ExitCode, runCommand } from '../command';
import { onlyId } from './one-user';

const USAGE = `npm run users:remember -- <id at the identity provider>

  Deletes the entry that users:forget stored in the table forgotten_users. Afterwards, any valid
  session token and any webhook of the user can create a link again. Also cancels the pending deletion of the user.
  Needs a DATABASE_URL whose role may write the tables forgotten_users and pending_deletions.
  Exit code: 0 deleted or cancelled, 1 there was nothing to delete or to cancel, or an error occurred, 2 the command did not start.`;

async function main(): Promise<ExitCode> {
  const id = onlyId(parseArgs({ allowPositionals: true, options: {} }).positionals);
  parseEnvironmentSubset(z.pick(variables, { DATABASE_URL: true }));
  const isCancelled = await cancelDeletion(id);
  const isDeleted = await remember(id);
  if (isCancelled) process.stdout.write('The pending deletion of this user is cancelled.\n');
  if (isDeleted) process.stdout.write('The entry is deleted. Any registration links this user again.\n');
  if (isCancelled || isDeleted) return 0;
  process.stdout.write(
    'There is no entry for this id. Pass the id at the identity provider, not the internal id.\n',
  );
  return 1;
}

await runCommand(USAGE, main);
