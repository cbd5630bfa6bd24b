import { type Command, InvalidArgumentError } from 'commander';
import { isIdentityProviderUserId } from '#lib/api/input';
import { createProgram, type ExitCode } from '../command';
import { adoptUsers, backfillUsers, checkUsers, publishUsers } from './in-bulk';
import { exportOne, forgetDueUsers, forgetOne, rememberOne, showOne } from './one-user';
import { relinkUsers } from './relink';

function parseDate(since: string): Date {
  const date = new Date(since);
  if (!/^\d{4}-\d\d-\d\d/.test(since) || Number.isNaN(date.getTime()))
    throw new InvalidArgumentError('Pass a date, such as 2026-11-01 or 2026-11-01T08:00:00Z.');
  return date;
}

const parseWholeNumber = (pattern: RegExp, range: string) => (value: string) => {
  if (!pattern.test(value)) throw new InvalidArgumentError(`Pass a whole number from ${range}.`);
  return Number(value);
};

function parseId(id: string): string {
  if (!isIdentityProviderUserId(id)) throw new InvalidArgumentError('Invalid id.');
  return id;
}

const EITHER_ID = 'the internal id or the id at the identity provider';
const NEEDS_ALL =
  'Needs IDP_SECRET_KEY, KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may write the tables users, forgotten_users and pending_deletions.';

const withRetries = (command: Command) =>
  command.option(
    '--retry-seconds <seconds>',
    'retries failing requests and statements, with pauses of this length in total',
    parseWholeNumber(/^\d{1,6}$/, '0 to 999999'),
    120,
  );

/** Creates the command-line interface of `npm run users`. */
export function createUsersProgram(): Command {
  const program = createProgram('users', 'Commands for the users of the identity provider (docs/users.md).');
  program.addHelpText('after', '\nThe exit code is 0 for success, 1 for a failure, 2 for invalid arguments.');
  const add = <T extends unknown[]>(
    command: Command,
    needs: string,
    run: (...args: T) => Promise<ExitCode>,
  ) => {
    command.addHelpText('after', `\n${needs}`).action(async (...args: T) => {
      process.exitCode = await run(...args);
    });
  };

  add(
    withRetries(program.command('backfill'))
      .description('Links every unlinked user of the identity provider. Can be repeated.')
      .option('--since <date>', 'only users that were created since this time', parseDate)
      .option('--replay', 'also passes each linked user to the handler of user.updated in events/index.ts')
      .option('--dry-run', 'only counts'),
    'Needs IDP_SECRET_KEY and DATABASE_URL. Exits with 1 if a user failed or the run stopped early.',
    backfillUsers,
  );
  add(
    withRetries(program.command('check'))
      .description('Compares the users of the provider with the rows of the table users. Changes nothing.')
      .option('--ids', 'prints every id that is missing on one side'),
    'Needs IDP_SECRET_KEY and DATABASE_URL. Exits with 1 if there is a difference.',
    checkUsers,
  );
  add(
    withRetries(program.command('adopt'))
      .description(
        'Links each unlinked user whose external_id at the identity provider is a UUID in lower case to this UUID as the internal id. Never changes a link. Can be repeated.',
      )
      .option('--dry-run', 'only counts'),
    'Needs IDP_SECRET_KEY and DATABASE_URL. Exits with 1 if a user could not be adopted or the run stopped early.',
    adoptUsers,
  );
  add(
    withRetries(program.command('publish'))
      .description(
        'Sets the external_id of each linked user at the identity provider to the internal id, if it is empty or a previous id of the user. Another value that the list of users contains is kept. Can be repeated.',
      )
      .option('--dry-run', 'only counts'),
    'Needs IDP_SECRET_KEY and DATABASE_URL. Exits with 1 if a value was kept, an update failed or the run stopped early.',
    publishUsers,
  );
  add(
    program
      .command('show')
      .description('Shows the link and the cache entry of one user, and whether the provider has the user.')
      .argument('<id>', EITHER_ID, parseId),
    'Needs IDP_SECRET_KEY, DATABASE_URL, KV_REST_API_URL and KV_REST_API_TOKEN. Exits with 1 if the user is not linked.',
    showOne,
  );
  add(
    program
      .command('forget')
      .description(
        'Deletes the cache entry and the row of one user, and the rows that refer to the row by ON DELETE CASCADE. For the next FORGOTTEN_USERS_DAYS days (default 30), only a session token that is issued after the deletion links the user again.',
      )
      .argument('<id>', EITHER_ID, parseId)
      .option('--yes', 'does not ask for confirmation'),
    `${NEEDS_ALL} Exits with 1 if the user does not exist, is not deleted, linked again or uncertain.`,
    forgetOne,
  );
  add(
    program
      .command('due')
      .description(
        'Forgets all users whose deletion was scheduled by an event and is now due, unless the provider has the user again. Prints a receipt for each user.',
      ),
    `${NEEDS_ALL} Exits with 1 if a deletion is still pending.`,
    forgetDueUsers,
  );
  add(
    program
      .command('remember')
      .description('Lets any registration link a forgotten user again. Cancels a pending deletion.')
      .argument('<id>', 'the id at the identity provider', parseId),
    'Needs a DATABASE_URL whose role may write the tables forgotten_users and pending_deletions. Exits with 1 if there is nothing to do.',
    rememberOne,
  );
  add(
    withRetries(program.command('relink'))
      .description(
        'Links users to their new ids at the identity provider, for example after a move to another instance. Each user keeps the internal id. Changes nothing if a line of the map cannot be applied (a collision). After an interruption, run the same command again.',
      )
      .option('--map <file>', 'CSV file with a line old,new for each user')
      .option(
        '--external-id',
        'reads the map from the provider: the external_id of a user is the old id',
        false,
      )
      .option('--rollback <run>', 'undoes the run with this id, which the run printed')
      .option('--dry-run', 'only checks the lines')
      .option(
        '--window-days <days>',
        'number of days for which the service accepts the previous ids',
        parseWholeNumber(/^[1-9]\d{0,2}$/, '1 to 999'),
        30,
      ),
    'Needs KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may write the tables users and previous_ids. --external-id also needs IDP_SECRET_KEY. Exits with 1 if there are collisions or the run stopped early.',
    relinkUsers,
  );
  add(
    program
      .command('export')
      .description('Prints all data of one user as JSON, with the rows that events/export-user.ts returns.')
      .argument('<id>', EITHER_ID, parseId),
    'Needs IDP_SECRET_KEY, KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may read all tables. Exits with 1 if the user is not linked.',
    exportOne,
  );
  return program;
}
