import { randomInt, randomUUID } from 'node:crypto';
import * as z from 'zod/mini';
import { type CheckResult, check, fail, skip, UNTRUSTED, validVariables, warn } from '../base/check';
import { variables } from '../base/env';
import { errorCode } from '../base/errors';
import { withTimeout } from '../core/async';
import type { Kind } from '../core/ports';
import { fieldsOf } from '../core/values';
import { KINDS } from '../ids/store';
import { withConnection } from '../storage/database';
import { pendingMigrations } from '../storage/migrations';

const TIMEOUT_MS = 5_000;

type Explanation = readonly [code: RegExp, message: string, remedy: string];
const UNKNOWN: Explanation = [
  /./,
  'the database returns an error',
  'Look up the code in the PostgreSQL manual',
];

/** Patterns of SQLSTATEs, Node.js error codes and driver messages. The first match applies. */
const CONNECTION_ERRORS: readonly Explanation[] = [
  [/^28/, 'the database rejects the role or its password', 'Percent-encode the password in DATABASE_URL'],
  [/^3D000$/, 'the database does not exist', 'Correct the database name in the path of DATABASE_URL'],
  [/^53300$/, 'the database has no free connection', 'Use a connection pooler, or raise max_connections'],
  [
    /^E(?:CONN|NOTFOUND|AI_AGAIN|HOST|NET|TIMEDOUT)/,
    'cannot connect to the database',
    'Correct host and port of DATABASE_URL, and allow this machine in the firewall',
  ],
  [/^08P01$/, 'the pooler rejects the connection', 'Remove parameters from DATABASE_URL, or look in its log'],
  [
    new RegExp(`SSL|TLS|${UNTRUSTED.source}`),
    'cannot open a TLS connection to the database',
    'Set the sslmode that the database provider documents',
  ],
  [
    /time|Connection terminated|^57P03$/i,
    'the database does not respond in time',
    'Check that it is running and that the firewall allows this machine. If it scales to zero, run the doctor again',
  ],
];

const GRANT = 'Run as the owner, for the role of DATABASE_URL: GRANT';

/** SQLSTATEs of the statements that link a test user and a test tenant. */
const LINK_ERRORS: readonly Explanation[] = [
  [
    /^42501$/,
    'the role may not link users or tenants',
    `${GRANT} USAGE ON SCHEMA public, and SELECT, INSERT ON users, tenants`,
  ],
  [
    /^42P10$/,
    'there is no unique index on users.identity_provider_user_id: the service cannot link new users',
    'Delete duplicate rows, and run: CREATE UNIQUE INDEX ON users (identity_provider_user_id)',
  ],
  [
    /^25006$/,
    'the database is read-only: it is a replica, or default_transaction_read_only is on',
    'Set DATABASE_URL to the primary, or turn default_transaction_read_only off',
  ],
  [
    /^42(?:P01|883)$/,
    'a table or a function of the service does not exist',
    'Apply the pending migrations, or restore the whole schema from a backup',
  ],
];

function explain(error: unknown, explanations: readonly Explanation[]): never {
  const code = errorCode(error);
  const [, message, remedy] = explanations.find(([pattern]) => pattern.test(code)) ?? UNKNOWN;
  fail(`${message} (${code})`, remedy);
}

/** Returns a statement that links an id that does not exist, in the way of lib/ids/store.ts. */
const linkStatement = (kind: Kind) => {
  const { table, column } = KINDS[kind];
  const id = `doctor_${randomUUID()}`;
  return `
  INSERT INTO public.${table} (id, ${column})
  SELECT '${randomUUID()}', '${id}'
   WHERE public.forgotten_until('${kind}', '${id}', now()) IS NULL
     AND NOT EXISTS (SELECT FROM public.previous_links('${kind}', ARRAY['${id}']))
  ON CONFLICT (${column}) DO NOTHING
  RETURNING id`;
};

const EVENT_TABLES = ['webhook_messages', 'webhook_subjects', 'pending_deletions'];
const EVENT_RIGHTS = `
  SELECT FROM unnest('{${EVENT_TABLES}}'::text[]) AS tables (name),
              unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS rights (name)
   WHERE NOT has_table_privilege(to_regclass('public.' || tables.name), rights.name)
   UNION ALL SELECT WHERE NOT has_any_column_privilege(to_regclass('public.link_changes'), 'INSERT')`;

async function checkMigrations(databaseUrl: string): Promise<string> {
  const pending = await withTimeout(TIMEOUT_MS, pendingMigrations(databaseUrl));
  const remedy = `${GRANT} SELECT ON _prisma_migrations`;
  if (pending === undefined) warn('the role may not read _prisma_migrations', remedy);
  if (pending.length === 0) return 'all migrations are applied';
  fail(`pending: ${pending.join(', ')}`, 'Run npm run db:deploy as the owner of the tables');
}

/** Links a test user and a test tenant. withConnection() closes the connection, and PostgreSQL rolls the transaction back. */
async function checkRegistration(): Promise<string> {
  await withConnection(async (rows) => {
    await rows('BEGIN');
    await rows(linkStatement('user'));
    await rows(linkStatement('tenant'));
  }).catch((error: unknown) => explain(error, LINK_ERRORS));
  return 'a test user was linked, and the transaction was rolled back';
}

async function checkEventTables(): Promise<string> {
  const missing = await withConnection((rows) => rows(EVENT_RIGHTS));
  if (missing.length === 0) return 'the role has the rights on the tables of webhook events';
  fail(
    'the role may not write the tables of webhook events: every event with a handler in events/ gets a 500',
    `${GRANT} SELECT, INSERT, UPDATE, DELETE ON ${EVENT_TABLES.join(', ')}; GRANT INSERT (kind, operation, internal_id, id_hash, run, changed_by, reason) ON link_changes`,
  );
}

/** Returns a statement that reads the settings and, until the end of the transaction, tries to hold a lock. */
const settingsStatement = (lock: number) => `
  SELECT pg_try_advisory_xact_lock(${lock}) AS locked, pg_backend_pid() AS pid,
         extract(epoch FROM clock_timestamp())::float8 * 1000 AS time,
         concat_ws(', ', current_setting('server_version'), current_setting('default_transaction_isolation'),
           'search_path ' || current_setting('search_path'), 'time zone ' || current_setting('TimeZone')) AS settings`;
const MAX_CLOCK_DIFFERENCE_MS = 5_000;

/** Checks the clock of the database, and that a lock of one connection excludes another, also through a pooler. */
async function checkSettings(): Promise<string> {
  const statement = settingsStatement(randomInt(2 ** 40));
  const read = async (rows: (statement: string) => Promise<unknown[]>) =>
    fieldsOf((await rows(statement))[0]);
  const [first, other, holder, excluded, difference] = await withConnection(async (rows) => {
    const first = await read(rows);
    const difference = Math.abs(Date.now() - Number(first['time']));
    const other = await withConnection(read);
    await rows('BEGIN');
    return [first, other, await read(rows), await withConnection(read), difference] as const;
  });
  if (!holder['locked'] || excluded['locked'])
    fail('the database does not keep the lock of a transaction', 'Connect to PostgreSQL directly');
  if (difference > MAX_CLOCK_DIFFERENCE_MS)
    warn('the clocks of the database and of this machine differ by more than 5 s', 'Set both clocks by NTP');
  const isPooled = first['pid'] === other['pid'] || first['pid'] !== holder['pid'];
  return `PostgreSQL ${first['settings']}, ${isPooled ? 'a' : 'no'} transaction pooler`;
}

async function connect(): Promise<string> {
  const { DATABASE_URL } = validVariables(z.pick(variables, { DATABASE_URL: true }));
  await withTimeout(
    TIMEOUT_MS,
    withConnection((rows) => rows('SELECT 1')),
  ).catch((error: unknown) => explain(error, CONNECTION_ERRORS));
  return DATABASE_URL;
}

/** Checks the database with the connection pool of the service. Changes nothing. */
export async function checkDatabase(handlesEvents: boolean): Promise<CheckResult[]> {
  const connected = connect();
  const checkConnected = (name: string, run: (databaseUrl: string) => Promise<string>) =>
    check(name, () => connected.then(run, () => skip('there is no database connection')));
  return Promise.all([
    check('database', () => connected.then(() => 'responds')),
    checkConnected('migrations', checkMigrations),
    checkConnected('registration', checkRegistration),
    checkConnected('settings', checkSettings),
    ...(handlesEvents ? [checkConnected('webhook handlers', checkEventTables)] : []),
  ]);
}
