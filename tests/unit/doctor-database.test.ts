import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { Pool } from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { checkDatabase } from '#lib/doctor/database';
import { closeDatabase } from '#lib/storage/database';

// The doctor is the command that checks the configuration of a deployment (`npm run doctor`). tests/service/doctor.test.ts
// runs these checks with a real PostgreSQL. Here, a mocked driver returns the facts that the doctor reads from PostgreSQL.

const applied = readdirSync('prisma/migrations', { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => ({
    migration_name: name,
    checksum: createHash('sha256')
      .update(readFileSync(`prisma/migrations/${name}/migration.sql`))
      .digest('hex'),
    finished_at: new Date(),
  }))
  .sort((one, other) => (one.migration_name < other.migration_name ? -1 : 1));
const [first, ...later] = applied.map((row) => row.migration_name);

const FACTS = {
  role: 'service',
  zone: 'UTC',
  readOnly: false,
  maxConnections: 103,
  process: 7,
  privileges: Array.of<string>(),
  hasTable: true,
  maySelect: true,
  mayInsert: true,
  missingFunctions: Array.of<string>(),
  mayHandleEvents: true,
  isUnique: true,
  hasMigrationsTable: true,
  mayReadMigrations: true,
};
let facts: typeof FACTS;
let migrations: { migration_name: string; checksum: string; finished_at: Date | null }[];
/** Ids of the PostgreSQL processes that `pg_backend_pid()` returns, in the order of the calls. */
let processes: number[];
/** The process id that the server sends when a connection is opened. */
let announced: number | undefined;
const statements: string[] = [];

async function query(statement: string) {
  statements.push(statement);
  if (/^\s*SELECT format/.test(statement)) return { rows: [facts] };
  if (statement.includes('FROM public._prisma_migrations')) return { rows: migrations };
  if (statement.includes('pg_backend_pid')) return { rows: [{ pid: processes.shift() }] };
  if (statement === 'SELECT 1') now += 3;
  return { rows: [] };
}
let now = 0;

beforeEach(() => {
  vi.stubEnv('DATABASE_URL', 'postgresql://localhost/app');
  facts = { ...FACTS };
  migrations = applied;
  processes = [];
  announced = 7;
  statements.length = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const connect = async () => ({ processID: announced, query, release: () => undefined });
  vi.spyOn(Pool.prototype, 'connect').mockImplementation(connect);
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await closeDatabase();
});

const check = (options = {}) => checkDatabase({ isLocal: false, handlesEvents: true, ...options });
const byName = async (name: string, options = {}) => {
  const { name: _name, ...result } = (await check(options)).find((each) => each.name === name) ?? {};
  return result;
};

test('The doctor finds no problem in a migrated database whose role has only the privileges that the service needs', async () => {
  expect(await check()).toEqual([
    {
      name: 'database',
      status: 'ok',
      message: 'responds, 3 ms per round trip from this machine, median of 5',
    },
    { name: 'migrations', status: 'ok', message: `all ${applied.length} migrations are applied` },
    { name: 'database rights', status: 'ok', message: 'the role may SELECT and INSERT' },
    { name: 'database role', status: 'ok', message: 'the role has only the privileges that it needs' },
    {
      name: 'unique users',
      status: 'ok',
      message: 'a unique index allows one row per identity-provider user',
    },
    { name: 'time zone', status: 'ok', message: 'UTC' },
    {
      name: 'pooler',
      status: 'ok',
      message: 'there is no pooler: max_connections is 103, which suffices for 10 processes of the service',
    },
  ]);
  expect(statements.slice(1)).toEqual([
    'SELECT migration_name, checksum, finished_at FROM public._prisma_migrations WHERE rolled_back_at IS NULL',
    ...Array.from({ length: 5 }, () => 'SELECT 1'),
  ]);
});

test('On the local stack, the doctor does not check the privileges of the role', async () => {
  facts.privileges = ['is a superuser'];
  expect(await byName('database role', { isLocal: true })).toEqual({
    status: 'skipped',
    message: 'on the local stack, the role owns everything',
  });
});

test('The doctor skips the checks of the database if DATABASE_URL is invalid', async () => {
  vi.stubEnv('DATABASE_URL', '');
  const noConnection = { status: 'skipped', message: 'there is no database connection' };
  expect(await check()).toEqual([
    { name: 'database', status: 'skipped', message: 'DATABASE_URL is invalid' },
    { name: 'migrations', ...noConnection },
    { name: 'database rights', ...noConnection },
    { name: 'database role', ...noConnection },
    { name: 'unique users', ...noConnection },
    { name: 'time zone', ...noConnection },
    { name: 'pooler', ...noConnection },
  ]);
});

const CONNECTION = 'Correct host and port of DATABASE_URL, and allow this machine in the firewall';
const TLS =
  'Set the sslmode that the database provider documents. Node.js must trust the certificate of the database';
const TIME =
  'Check that the database is running and that the firewall allows this machine. If the database scales to zero, run the doctor again';
const UNKNOWN = 'Look up the code in appendix A of the PostgreSQL documentation';
test.each([
  [
    '28P01',
    'the database rejects the role or its password',
    'Copy the connection string again, and percent-encode the password',
  ],
  [
    '3D000',
    'the database does not exist',
    'Correct the database name in the path of DATABASE_URL, or create the database',
  ],
  [
    '53300',
    'the database has no free connection',
    'Use a connection pooler, or raise max_connections of the database',
  ],
  ['57P03', 'the database is starting up or shutting down', 'Wait a moment, and run the doctor again'],
  ['ECONNREFUSED', 'cannot connect to the database', CONNECTION],
  ['ENOTFOUND', 'cannot connect to the database', CONNECTION],
  ['EAI_AGAIN', 'cannot connect to the database', CONNECTION],
  ['ECONNRESET', 'cannot connect to the database', CONNECTION],
  ['ETIMEDOUT', 'cannot connect to the database', CONNECTION],
  ['CERT_HAS_EXPIRED', 'cannot open a TLS connection to the database', TLS],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'cannot open a TLS connection to the database', TLS],
  ['timeout expired', 'the database does not respond in time', TIME],
  ['Connection terminated unexpectedly', 'the database does not respond in time', TIME],
  ['X28P01', 'the database returns an error (X28P01)', UNKNOWN],
  ['X3D000', 'the database returns an error (X3D000)', UNKNOWN],
  ['3D0000', 'the database returns an error (3D0000)', UNKNOWN],
  ['X53300', 'the database returns an error (X53300)', UNKNOWN],
  ['533000', 'the database returns an error (533000)', UNKNOWN],
  ['X57P03', 'the database returns an error (X57P03)', UNKNOWN],
  ['57P034', 'the database returns an error (57P034)', UNKNOWN],
  ['XENOTFOUND', 'the database returns an error (XENOTFOUND)', UNKNOWN],
  ['ENOTFOUNDX', 'the database returns an error (ENOTFOUNDX)', UNKNOWN],
])('The doctor explains the code or the message of a connection error: %s', async (code, message, remedy) => {
  const error = code.includes(' ') ? new Error(code) : Object.assign(new Error('me:hidden@'), { code });
  vi.mocked(Pool.prototype.connect).mockImplementation(() => Promise.reject(error));
  expect(await byName('database')).toEqual({
    status: 'failure',
    message: message.includes('(') ? message : `${message} (${code})`,
    remedy,
  });
});

const APPLY = 'Run npm run db:deploy as the role that owns the tables';
test.each<[string, () => void, object]>([
  [
    'a migration is pending',
    () => {
      migrations = applied.slice(0, 1);
    },
    { status: 'failure', message: `pending: ${later.join(', ')}`, remedy: APPLY },
  ],
  [
    'there is no table of applied migrations',
    () => {
      Object.assign(facts, { hasMigrationsTable: false, mayReadMigrations: false });
    },
    { status: 'failure', message: `pending: ${[first, ...later].join(', ')}`, remedy: APPLY },
  ],
  [
    'migrations failed',
    () => {
      const failed = ['2_bad', '3_bad'].map((name) => ({
        ...{ migration_name: name, checksum: 'x', finished_at: null },
      }));
      migrations = [...applied, ...failed];
    },
    {
      status: 'failure',
      message: 'failed: 2_bad, 3_bad',
      remedy:
        'Correct the cause. Then run npx prisma migrate resolve --rolled-back 2_bad, or set rolled_back_at in its row in _prisma_migrations. Do this for each failed migration. Then run npm run db:deploy',
    },
  ],
  [
    'migrations were edited',
    () => {
      migrations = applied.map((row, index) => (index < 2 ? { ...row, checksum: 'x' } : row));
    },
    {
      status: 'failure',
      message: `applied and then edited: ${first}, ${later[0]}`,
      remedy: 'Restore each file, and make the change in a new migration',
    },
  ],
  [
    'the role may not read the table of applied migrations',
    () => {
      facts.mayReadMigrations = false;
    },
    {
      status: 'warning',
      message: 'the role may not read the table of applied migrations; the users table exists',
      remedy: 'Run as the owner: GRANT SELECT ON _prisma_migrations TO service',
    },
  ],
  [
    'the role may not read the table of applied migrations, and there is no table `users`',
    () => {
      Object.assign(facts, { mayReadMigrations: false, hasTable: false });
    },
    {
      status: 'warning',
      message: 'the role may not read the table of applied migrations; the users table does not exist',
      remedy: 'Run as the owner: GRANT SELECT ON _prisma_migrations TO service',
    },
  ],
])('The doctor reports the state of the migrations if %s', async (_what, change, result) => {
  change();
  expect(await byName('migrations')).toEqual(result);
});

const FUNCTION_REMEDY =
  'Run as the owner: GRANT EXECUTE ON FUNCTION previous_links TO service. If the function does not exist, apply the pending migrations, or restore the whole schema from a backup';
const GRANT =
  'Run as the owner: GRANT USAGE ON SCHEMA public TO service; GRANT SELECT, INSERT ON users TO service';
test.each<[string, Partial<typeof FACTS>, object]>([
  [
    'the database is read-only',
    { readOnly: true, hasTable: false },
    {
      status: 'failure',
      message: 'the database is read-only: it is a replica, or default_transaction_read_only is on',
      remedy: 'Set DATABASE_URL to the primary, or turn default_transaction_read_only off',
    },
  ],
  ['there is no table', { hasTable: false }, { status: 'skipped', message: 'there is no users table' }],
  [
    'a function is missing',
    { missingFunctions: ['previous_links', 'forgotten_until'] },
    {
      status: 'failure',
      message:
        'the role may not execute the function previous_links, or there is no such function: the service cannot link users',
      remedy: FUNCTION_REMEDY,
    },
  ],
  [
    'the role may not write the tables of webhook events',
    { mayHandleEvents: false },
    {
      status: 'failure',
      message:
        'the role may not write the tables of webhook events: every event with a handler in events/ gets a 500',
      remedy:
        'Run as the owner: GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_messages, webhook_subjects, pending_deletions TO service',
    },
  ],
  [
    'the role may not insert',
    { mayInsert: false, missingFunctions: ['previous_links'], mayHandleEvents: false },
    { status: 'failure', message: 'the role may not INSERT', remedy: GRANT },
  ],
  [
    'the role may not select',
    { maySelect: false, missingFunctions: ['previous_links'], mayHandleEvents: false },
    { status: 'failure', message: 'the role may not SELECT', remedy: GRANT },
  ],
  [
    'the role has no privilege',
    { maySelect: false, mayInsert: false },
    { status: 'failure', message: 'the role may neither SELECT nor INSERT', remedy: GRANT },
  ],
])('The doctor reports the correct result for the database rights if %s', async (_what, changes, result) => {
  Object.assign(facts, changes);
  expect(await byName('database rights')).toEqual(result);
});

test('The doctor requires privileges on the tables of webhook events only if the application has event handlers', async () => {
  facts.mayHandleEvents = false;
  expect(await byName('database rights', { handlesEvents: false })).toMatchObject({ status: 'ok' });
});

test('The doctor warns about needless privileges of the role', async () => {
  facts.privileges = ['is a superuser', 'may delete users'];
  expect(await byName('database role')).toEqual({
    status: 'warning',
    message: 'the role is a superuser, may delete users',
    remedy:
      'Create a role that has only the privileges that the service needs (docs/deploy.md, step 2), and migrate as the role that owns the tables',
  });
});

test('The doctor reports a missing unique index only if the table exists', async () => {
  facts.isUnique = false;
  expect(await byName('unique users')).toEqual({
    status: 'failure',
    message: 'no unique index on users.identity_provider_user_id: the service cannot link new users',
    remedy:
      'Delete duplicate rows, and run: CREATE UNIQUE INDEX users_identity_provider_user_id_key ON users (identity_provider_user_id)',
  });
  facts.hasTable = false;
  expect(await byName('unique users')).toEqual({ status: 'skipped', message: 'there is no users table' });
});

test('The doctor accepts each name of UTC and warns about any other time zone', async () => {
  for (const zone of ['UTC', 'Etc/UTC', 'gmt', 'Zulu']) {
    facts.zone = zone;
    expect(await byName('time zone')).toEqual({ status: 'ok', message: zone });
  }
  for (const zone of ['Europe/Berlin', 'Etc/GMT+5', 'My/UTC']) {
    facts.zone = zone;
    expect(await byName('time zone')).toEqual({
      status: 'warning',
      message: `the time zone is ${zone} and not UTC: Prisma's driver adapter misreads timestamptz columns of your own tables`,
      remedy: "Run as this role or as a superuser: ALTER ROLE service SET timezone = 'UTC'",
    });
  }
});

// PostgreSQL announces the id of its process when a connection is opened. The connection uses process 7 (`FACTS`), so a
// different announced id, or none, shows that there is a pooler. The doctor then requests the process ids of three statements.
// The first and the third statement run on one connection. The second runs on another connection, in a transaction. A pooler
// pools by transaction if both connections use the same process, or if the first connection changes its process.
test.each([
  ['a pooler', 8, [1, 2, 1]],
  ['a pooler', undefined, [1, 2, 1]],
  ['a pooler that pools by transaction', 8, [1, 1, 1]],
  ['a pooler that pools by transaction', 8, [1, 2, 3]],
])(
  'The doctor recognizes %s: the announced process id is %s, and the process ids of three statements are %j',
  async (message, announcedProcessId, pids) => {
    announced = announcedProcessId;
    processes = [...pids];
    expect(await byName('pooler')).toEqual({ status: 'ok', message });
    expect(statements.slice(-4).filter((statement) => statement === 'BEGIN')).toHaveLength(1);
  },
);
