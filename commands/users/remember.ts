import { parseArgs } from 'node:util';
import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '#lib/env';
import { remember } from '#lib/users/forget';
import { type ExitCode, runCommand } from '../command';
import { onlyId } from './one-user';

const USAGE = `npm run users:remember -- <identity provider's id>

  Deletes the entry that users:forget stored, so that any registration links the user again.
  Needs a DATABASE_URL whose role may write forgotten_users.
  Exit code: 0 deleted, 1 the user is not forgotten or an error occurred, 2 the command did not start.`;

async function main(): Promise<ExitCode> {
  const id = onlyId(parseArgs({ allowPositionals: true, options: {} }).positionals);
  parseEnvironmentSubset(z.pick(variables, { DATABASE_URL: true }));
  const isDeleted = await remember(id);
  process.stdout.write(
    isDeleted
      ? 'The entry is deleted. Any registration links this user again.\n'
      : 'There is no entry for this id. Pass the id at the identity provider, not the internal id.\n',
  );
  return isDeleted ? 0 : 1;
}

await runCommand(USAGE, main);
