import { parseArgs } from 'node:util';
import { retry } from '#lib/concurrency/retry';
import { parseEnvironmentSubset } from '#lib/env';
import { exportUser } from '#lib/users/export';
import { exportOwnTables } from '../../events/export-user';
import { type ExitCode, runCommand } from '../command';
import { linkOf, onlyId, VARIABLES } from './one-user';

const USAGE = `npm run users:export -- --user <internal id or id at the identity provider>

  Prints all data of one user as JSON. events/export-user.ts adds the rows of your own tables.
  Needs IDP_SECRET_KEY, KV_REST_API_URL, KV_REST_API_TOKEN, and a DATABASE_URL whose role may read all tables.
  Exit code: 0 the user is linked, 1 the user is not linked or an error occurred, 2 the command did not start.`;

const RETRY = { seconds: 3 };

/** Converts a BigInt to a string, because JSON has no BigInt type. Prisma returns a BigInt for a `bigint` column. */
const replaceBigInt = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

async function main(): Promise<ExitCode> {
  const { values } = parseArgs({ options: { user: { type: 'string', default: '' } } });
  const id = onlyId([values.user]);
  parseEnvironmentSubset(VARIABLES);
  const link = await linkOf(id);
  const user = link ?? { userId: undefined, identityProviderUserId: id, previousIds: [] };
  const exported = await retry(RETRY, () => exportUser(user, exportOwnTables));
  process.stdout.write(`${JSON.stringify(exported, replaceBigInt, 2)}\n`);
  return link ? 0 : 1;
}

await runCommand(USAGE, main);
