import * as z from 'zod/mini';
import { type MigrationRow, migrationState } from '../migrations/deploy';
import { MAX_CONNECTIONS, withConnection } from '../storage/database';
import {
  type CheckResult,
  check,
  errorCode,
  failure,
  medianDuration,
  type NamedCheck,
  ok,
  settle,
  skipped,
  warning,
} from './check';
import { ENV_GROUPS, tryParse } from './variables';

const ROUNDS = 5;

/**
 * Reads most facts for the checks in one query, from system catalogs that every role may read. `process` is the id of the
 * PostgreSQL process that serves the connection. `isUnique` is true if ON CONFLICT can use a unique index whose only column is
 * `identity_provider_user_id`. ON CONFLICT can use the index only if it is valid, not deferrable and not partial.
 * `missingFunctions` are the functions that do not exist or that the role may not execute.
 */
const FACTS = `
  SELECT format('%I', current_user) AS role,
         current_setting('TimeZone') AS zone,
         current_setting('transaction_read_only') = 'on' AS "readOnly",
         current_setting('max_connections')::int AS "maxConnections",
         pg_backend_pid() AS process,
         array_remove(ARRAY[
           CASE WHEN r.rolsuper THEN 'is a superuser' END,
           CASE WHEN r.rolbypassrls THEN 'bypasses row security' END,
           CASE WHEN r.rolcreatedb THEN 'may create databases' END,
           CASE WHEN r.rolcreaterole THEN 'may create roles' END,
           CASE WHEN pg_has_role(c.relowner, 'USAGE') THEN 'owns the users table and may drop it' END,
           CASE WHEN has_table_privilege(c.oid, 'UPDATE') THEN 'may update users' END,
           CASE WHEN has_table_privilege(c.oid, 'DELETE') THEN 'may delete users' END,
           CASE WHEN has_table_privilege(c.oid, 'TRUNCATE') THEN 'may truncate users' END
         ], NULL) AS privileges,
         c.oid IS NOT NULL AS "hasTable",
         coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'), false) AS "maySelect",
         coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT'), false) AS "mayInsert",
         array(
           SELECT (regexp_split_to_array(name, '[.(]'))[2]
             FROM unnest(ARRAY['public.forgotten_until(text, timestamptz)', 'public.previous_links(text[])']) AS name
            WHERE NOT coalesce(has_function_privilege(to_regprocedure(name), 'EXECUTE'), false)
         ) AS "missingFunctions",
         coalesce((
           SELECT bool_and(has_table_privilege(to_regclass(names.name), privilege))
             FROM unnest(ARRAY['public.webhook_messages', 'public.webhook_subjects', 'public.pending_deletions']) AS names (name),
                  unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS privileges (privilege)
         ), false) AS "mayHandleEvents",
         EXISTS (
           SELECT FROM pg_index i
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'identity_provider_user_id'
            WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
              AND i.indpred IS NULL AND i.indkey::text = a.attnum::text
         ) AS "isUnique",
         m.oid IS NOT NULL AS "hasMigrationsTable",
         coalesce(has_table_privilege(m.oid, 'SELECT'), false) AS "mayReadMigrations"
    FROM pg_roles r
    LEFT JOIN pg_class c ON c.oid = to_regclass('public.users')
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_class m ON m.oid = to_regclass('public._prisma_migrations')
   WHERE r.rolname = current_user`;

const Facts = z.object({
  role: z.string(),
  zone: z.string(),
  readOnly: z.boolean(),
  maxConnections: z.number(),
  process: z.number(),
  privileges: z.array(z.string()),
  hasTable: z.boolean(),
  maySelect: z.boolean(),
  mayInsert: z.boolean(),
  missingFunctions: z.array(z.string()),
  mayHandleEvents: z.boolean(),
  isUnique: z.boolean(),
  hasMigrationsTable: z.boolean(),
  mayReadMigrations: z.boolean(),
});

type Facts = z.infer<typeof Facts> & {
  readonly announcedProcessId: number | undefined;
  readonly milliseconds: number;
  readonly migrations: readonly MigrationRow[];
};

/** Rows of Prisma's table of applied migrations. */
const Rows = z.array(
  z.object({ migration_name: z.string(), checksum: z.string(), finished_at: z.nullable(z.date()) }),
);

const readFacts = (): Promise<Facts> =>
  withConnection(async ({ announcedProcessId, rows }) => {
    const facts = Facts.parse((await rows(FACTS))[0]);
    const migrations = facts.mayReadMigrations
      ? Rows.parse(
          await rows(
            'SELECT migration_name, checksum, finished_at FROM public._prisma_migrations WHERE rolled_back_at IS NULL',
          ),
        )
      : [];
    return {
      ...facts,
      announcedProcessId,
      migrations,
      milliseconds: await medianDuration(ROUNDS, () => rows('SELECT 1')),
    };
  });

/**
 * Patterns of SQLSTATEs, Node.js error codes and driver messages. Each pattern has a message and a remedy. The first match
 * applies.
 */
const CONNECTION_ERRORS: readonly (readonly [RegExp, string, string])[] = [
  [
    /^28/,
    'the database rejects the role or its password',
    'Copy the connection string again, and percent-encode the password',
  ],
  [
    /^3D000$/,
    'the database does not exist',
    'Correct the database name in the path of DATABASE_URL, or create the database',
  ],
  [
    /^53300$/,
    'the database has no free connection',
    'Use a connection pooler, or raise max_connections of the database',
  ],
  [/^57P03$/, 'the database is starting up or shutting down', 'Wait a moment, and run the doctor again'],
  [
    /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/,
    'cannot connect to the database',
    'Correct host and port of DATABASE_URL, and allow this machine in the firewall',
  ],
  [
    /CERT|SSL|TLS/i,
    'cannot open a TLS connection to the database',
    'Set the sslmode that the database provider documents. Node.js must trust the certificate of the database',
  ],
  [
    /time|Connection terminated/i,
    'the database does not respond in time',
    'Check that the database is running and that the firewall allows this machine. If the database scales to zero, run the doctor again',
  ],
];

function explain(error: unknown): CheckResult {
  const code = errorCode(error);
  for (const [pattern, message, remedy] of CONNECTION_ERRORS)
    if (pattern.test(code)) return failure(`${message} (${code})`, remedy);
  return failure(
    `the database returns an error (${code})`,
    'Look up the code in appendix A of the PostgreSQL documentation',
  );
}

function checkMigrations({
  hasTable,
  hasMigrationsTable,
  mayReadMigrations,
  migrations,
  role,
}: Facts): CheckResult {
  if (hasMigrationsTable && !mayReadMigrations)
    return warning(
      `the role may not read the table of applied migrations; the users table ${hasTable ? 'exists' : 'does not exist'}`,
      `Run as the owner: GRANT SELECT ON _prisma_migrations TO ${role}`,
    );
  const { pending, failed, edited } = migrationState(migrations);
  const apply = 'Run npm run db:deploy as the role that owns the tables';
  if (failed.length > 0)
    return failure(
      `failed: ${failed.join(', ')}`,
      `Correct the cause. Then run npx prisma migrate resolve --rolled-back ${failed[0]}, or set rolled_back_at in its row in _prisma_migrations. Do this for each failed migration. Then run npm run db:deploy`,
    );
  if (edited.length > 0)
    return failure(
      `applied and then edited: ${edited.join(', ')}`,
      'Restore each file, and make the change in a new migration',
    );
  if (pending.length > 0) return failure(`pending: ${pending.join(', ')}`, apply);
  return ok(`all ${migrations.length} migrations are applied`);
}

function checkPrivileges(
  { hasTable, maySelect, mayInsert, missingFunctions, mayHandleEvents, readOnly, role }: Facts,
  handlesEvents: boolean,
): CheckResult {
  if (readOnly)
    return failure(
      'the database is read-only: it is a replica, or default_transaction_read_only is on',
      'Set DATABASE_URL to the primary, or turn default_transaction_read_only off',
    );
  if (!hasTable) return skipped('there is no users table');
  const [missing] = missingFunctions;
  if (maySelect && mayInsert && missing !== undefined)
    return failure(
      `the role may not execute the function ${missing}, or there is no such function: the service cannot link users`,
      `Run as the owner: GRANT EXECUTE ON FUNCTION ${missing} TO ${role}. If the function does not exist, apply the pending migrations, or restore the whole schema from a backup`,
    );
  if (maySelect && mayInsert && handlesEvents && !mayHandleEvents)
    return failure(
      'the role may not write the tables of webhook events: every event with a handler in events/ gets a 500',
      `Run as the owner: GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_messages, webhook_subjects, pending_deletions TO ${role}`,
    );
  if (maySelect && mayInsert) return ok('the role may SELECT and INSERT');
  return failure(
    `the role may ${maySelect ? 'not INSERT' : mayInsert ? 'not SELECT' : 'neither SELECT nor INSERT'}`,
    `Run as the owner: GRANT USAGE ON SCHEMA public TO ${role}; GRANT SELECT, INSERT ON users TO ${role}`,
  );
}

const checkUniqueIndex = ({ hasTable, isUnique }: Facts): CheckResult => {
  if (!hasTable) return skipped('there is no users table');
  return isUnique
    ? ok('a unique index allows one row per identity-provider user')
    : failure(
        'no unique index on users.identity_provider_user_id: the service cannot link new users',
        'Delete duplicate rows, and run: CREATE UNIQUE INDEX users_identity_provider_user_id_key ON users (identity_provider_user_id)',
      );
};

const checkTimeZone = ({ zone: name, role }: Facts): CheckResult =>
  /^(?:Etc\/)?(?:UTC|UCT|GMT|Universal|Zulu|Greenwich)$/i.test(name)
    ? ok(name)
    : warning(
        `the time zone is ${name} and not UTC: Prisma's driver adapter misreads timestamptz columns of your own tables`,
        `Run as this role or as a superuser: ALTER ROLE ${role} SET timezone = 'UTC'`,
      );

const checkRole = ({ privileges }: Facts): CheckResult =>
  privileges.length === 0
    ? ok('the role has only the privileges that it needs')
    : warning(
        `the role ${privileges.join(', ')}`,
        'Create a role that has only the privileges that the service needs (docs/deploy.md, step 2), and migrate as the role that owns the tables',
      );

/**
 * Detects a connection pooler. PostgreSQL announces the id of its process when a connection is opened. A pooler announces a
 * different id. With transaction pooling, one PostgreSQL process serves several client connections in turn.
 */
async function checkPooler({ announcedProcessId, process, maxConnections }: Facts): Promise<CheckResult> {
  if (announcedProcessId !== undefined && announcedProcessId === process)
    return ok(
      `there is no pooler: max_connections is ${maxConnections}, which suffices for ${Math.floor(maxConnections / MAX_CONNECTIONS)} processes of the service`,
    );
  return (await poolsByTransaction()) ? ok('a pooler that pools by transaction') : ok('a pooler');
}

const Process = z.tuple([z.object({ pid: z.number() })]);

/**
 * Opens two connections. Returns true if one PostgreSQL process serves both, or if the process of the first connection changes.
 * Without transaction pooling, neither happens, because each connection has a process of its own. The second connection is in a
 * transaction. A pooler does not change the process of a connection during a transaction, so the second connection keeps its
 * process while the first connection is queried again.
 */
const poolsByTransaction = (): Promise<boolean> =>
  withConnection((one) =>
    withConnection(async (other) => {
      const processOf = async (session: typeof one) =>
        Process.parse(await session.rows('SELECT pg_backend_pid() AS pid'))[0].pid;
      const first = await processOf(one);
      // withConnection() closes the connection afterwards, and PostgreSQL then rolls the transaction back.
      await other.rows('BEGIN');
      return (await processOf(other)) === first || (await processOf(one)) !== first;
    }),
  );

interface DatabaseOptions {
  readonly isLocal: boolean;
  readonly handlesEvents: boolean;
}

/**
 * Checks the database with the connection pool of the service. On the local stack (dev/), one role owns everything, so the
 * check for needless privileges is skipped.
 */
export async function checkDatabase({ isLocal, handlesEvents }: DatabaseOptions): Promise<NamedCheck[]> {
  const facts = tryParse(ENV_GROUPS.database)
    ? await settle(readFacts, explain)
    : { failed: skipped('DATABASE_URL is invalid') };
  const checkFacts = (name: string, run: (value: Facts) => CheckResult | Promise<CheckResult>) =>
    check(name, () => ('value' in facts ? run(facts.value) : skipped('there is no database connection')));
  return Promise.all([
    check('database', () =>
      'value' in facts
        ? ok(`responds, ${facts.value.milliseconds} ms per round trip from this machine, median of ${ROUNDS}`)
        : facts.failed,
    ),
    checkFacts('migrations', checkMigrations),
    checkFacts('database rights', (value) => checkPrivileges(value, handlesEvents)),
    checkFacts('database role', (value) =>
      isLocal ? skipped('on the local stack, the role owns everything') : checkRole(value),
    ),
    checkFacts('unique users', checkUniqueIndex),
    checkFacts('time zone', checkTimeZone),
    checkFacts('pooler', checkPooler),
  ]);
}
