import { type Command, InvalidArgumentError } from 'commander';
import type { Kind } from '#lib/core/ports';
import { isIdentityProviderUserId } from '#lib/core/values';
import { KINDS } from '#lib/ids/store';
import { mainProvider } from '#lib/main-provider';
import { createProgram, type ExitCode } from '../command';
import { withChange } from './change';
import { forgetAllDue, forgetOne, rememberOne } from './deletion';
import { showHistory } from './history';
import { adoptTenants, adoptUsers, backfillUsers, checkLinks, publishUsers } from './in-bulk';
import { ASKED, exportOne, NOUNS, showOne } from './one-link';
import { relinkLinks } from './relink';

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

/** Start of the variables that a command needs which queries the main provider. */
const KEY = mainProvider.directory ? `${mainProvider.directory.key}, ` : '';
const EITHER_ID = 'the internal id or the id at the identity provider';
const withDryRun = (command: Command) => command.option('--dry-run', 'only counts');
const withRetries = (command: Command) =>
  command.option(
    '--retry-seconds <seconds>',
    'retries failing requests and statements, with pauses of this length in total',
    parseWholeNumber(/^\d{1,6}$/, '0 to 999999'),
    120,
  );

/** Adds a command. The end of its help says what it needs. */
type Add = <T extends unknown[]>(
  name: string,
  description: string,
  needs: string,
  run: (...args: T) => Promise<ExitCode>,
) => Command;

/** Adds the commands that change nothing. */
function addQueries(kind: Kind, add: Add): void {
  const noun = NOUNS[kind];
  if (ASKED)
    withRetries(
      add(
        'check',
        `Compares the ${noun}s at ${ASKED} with the rows of the table ${KINDS[kind].table}. Changes nothing.`,
        `Needs ${KEY}DATABASE_URL. Exits with 1 if there is a difference.`,
        (options: Parameters<typeof checkLinks>[1]) => checkLinks(kind, options),
      ),
    ).option('--ids', 'prints every id that is a difference');
  add(
    'show',
    `Shows the link and the cache entry of one ${noun}, and whether ${mainProvider.name} has it.`,
    `Needs ${KEY}DATABASE_URL, KV_REST_API_URL and KV_REST_API_TOKEN. Exits with 1 if the ${noun} is not linked.`,
    (id: string) => showOne(kind, id),
  ).argument('<id>', EITHER_ID, parseId);
  add(
    'history',
    `Prints who changed which ${noun} and why, the newest change first, from the table link_changes. Changes nothing.`,
    'Needs a DATABASE_URL whose role may read the table link_changes. Exits with 1 if there is no row.',
    (id: string | undefined, options: Parameters<typeof showHistory>[2]) => showHistory(kind, id, options),
  )
    .argument('[id]', `${EITHER_ID}, also of a forgotten ${noun}, or the id of a run`, parseId)
    .option('--json', 'prints a JSON array')
    .option(
      '--limit <rows>',
      'maximum number of rows',
      parseWholeNumber(/^[1-9]\d{0,5}$/, '1 to 999999'),
      1000,
    );
}

/** Adds the commands for deletions. */
function addDeletions(kind: Kind, add: Add): void {
  const noun = NOUNS[kind];
  const needsAll = `Needs ${KEY}KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may write the tables ${KINDS[kind].table}, forgotten_users, pending_deletions and link_changes.`;
  const forget = add(
    'forget',
    `Deletes the cache entry and the row of one ${noun}, and the rows that refer to the row by ON DELETE CASCADE. For the next FORGOTTEN_USERS_DAYS days (default 30), ${kind === 'user' ? 'only a session token that is issued after the deletion links the user again' : 'its requests get a 403'}.`,
    `${needsAll} Exits with 1 if the ${noun} does not exist, is not deleted, linked again or uncertain.`,
    (id: string, options: Parameters<typeof forgetOne>[2]) => forgetOne(kind, id, options),
  );
  withChange(forget).argument('<id>', EITHER_ID, parseId).option('--yes', 'does not ask for confirmation');
  if (ASKED)
    withChange(
      add(
        'due',
        `Forgets all ${noun}s whose deletion was scheduled by an event and is now due, unless ${ASKED} has the ${noun} again. Prints a receipt for each.`,
        `${needsAll} Exits with 1 if a deletion is still pending.`,
        (options: Parameters<typeof forgetAllDue>[1]) => forgetAllDue(kind, options),
      ),
    );
  const remember = add(
    'remember',
    `Lets any registration link a forgotten ${noun} again. Cancels a pending deletion.`,
    'Needs a DATABASE_URL whose role may write the tables forgotten_users, pending_deletions and link_changes. Exits with 1 if there is nothing to do.',
    (id: string, options: Parameters<typeof rememberOne>[2]) => rememberOne(kind, id, options),
  );
  withChange(remember).argument('<id>', 'the id at the identity provider', parseId);
}

function addRelink(kind: Kind, add: Add): void {
  const noun = NOUNS[kind];
  const relink = add(
    'relink',
    `Links ${noun}s to their new ids at the identity provider, for example after a move to another instance. Each keeps the internal id. Changes nothing if a line of the map cannot be applied (a collision). After an interruption, run the same command again.`,
    `Needs KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may write the tables ${KINDS[kind].table}, previous_ids, forgotten_users and link_changes. Exits with 1 if there are collisions or the run stopped early.`,
    (options: Parameters<typeof relinkLinks>[1]) => relinkLinks(kind, options),
  );
  withRetries(withChange(relink))
    .option('--map <file>', `CSV file with a line old,new for each ${noun}`)
    .option('--rollback <run>', 'undoes the run with this id, which the run printed')
    .option('--dry-run', 'only checks the lines')
    .option('--skip-collisions', 'moves the others, although there are collisions')
    .option(
      '--window-days <days>',
      'number of days for which the service accepts the previous ids',
      parseWholeNumber(/^[1-9]\d{0,2}$/, '1 to 999'),
      30,
    );
  if (kind === 'user' && mainProvider.directory)
    relink.option(
      '--external-id',
      `reads the map from ${mainProvider.name}: the external_id of a user is the old id. Needs ${mainProvider.directory.key}`,
      false,
    );
}

/** Adds the commands for users alone, which export one or read every user of Clerk. */
function addUserCommands(add: Add): void {
  add(
    'export',
    'Prints all data of one user as JSON, with the rows that lib/tables/export-user.ts returns.',
    'Needs KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may read all tables. Exits with 1 if the user is not linked.',
    exportOne,
  ).argument('<id>', EITHER_ID, parseId);
  if (!mainProvider.directory) return;
  const needs = `Needs ${KEY}DATABASE_URL. Exits with 1 if`;
  const backfill = add(
    'backfill',
    'Links every unlinked user of Clerk. Can be repeated.',
    `${needs} a user failed or the run stopped early.`,
    backfillUsers,
  );
  withDryRun(
    withRetries(backfill)
      .option('--since <date>', 'only users that were created since this time', parseDate)
      .option('--replay', 'also passes each linked user to the handler of user.updated in events/index.ts'),
  );
  const adopt = add(
    'adopt',
    'Links each unlinked user whose external_id at Clerk is a UUID in lower case to this UUID as the internal id. Never changes a link. Can be repeated.',
    `${needs} a user could not be adopted or the run stopped early.`,
    adoptUsers,
  );
  const publish = add(
    'publish',
    'Sets the external_id of each linked user at Clerk to the internal id, if it is empty or a previous id of the user. Another value that the list of users contains is kept. Can be repeated.',
    `${needs} a value was kept, an update failed or the run stopped early.`,
    publishUsers,
  );
  for (const command of [adopt, publish]) withDryRun(withRetries(withChange(command)));
}

function addTenantCommands(add: Add): void {
  const adopt = add(
    'adopt',
    'Links organizations that have no tenant to the internal ids of a map. Never changes a link. Can be repeated.',
    'Needs a DATABASE_URL whose role may write the tables tenants, forgotten_users and link_changes. Exits with 1 if an organization could not be adopted or the run stopped early.',
    adoptTenants,
  );
  withRetries(withChange(adopt)).requiredOption(
    '--map <file>',
    'CSV file with a line organization,id for each organization',
  );
  withDryRun(adopt);
}

/** Creates the command-line interface of `npm run users` or `npm run tenants`. */
export function createLinksProgram(kind: Kind): Command {
  const noun = NOUNS[kind];
  const program = createProgram(
    `${kind}s`,
    `Commands for the ${noun}s of the identity provider (docs/users.md).`,
  );
  program.addHelpText('after', '\nThe exit code is 0 for success, 1 for a failure, 2 for invalid arguments.');
  const add: Add = (name, description, needs, run) =>
    program
      .command(name)
      .description(description)
      .addHelpText('after', `\n${needs}`)
      .action(async (...args: Parameters<typeof run>) => {
        process.exitCode = await run(...args);
      });
  if (kind === 'user') addUserCommands(add);
  else addTenantCommands(add);
  for (const addCommands of [addQueries, addDeletions, addRelink]) addCommands(kind, add);
  return program;
}
