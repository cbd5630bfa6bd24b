import * as z from 'zod/mini';
import { type MigrationRow, migrationState } from '../migrations/deploy';
import { MAX_CONNECTIONS, withConnection } from '../storage/database';
import {
  attempt,
  check,
  codeOf,
  type Examined,
  type Finding,
  failure,
  median,
  ok,
  skipped,
  warning,
} from './check';
import { PARTS, valid } from './variables';

const ROUNDS = 5;

/** One question for all that the checks judge by. It asks of catalogs alone, which every role may read. */
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
           CASE WHEN pg_has_role(c.relowner, 'USAGE') THEN 'owns the users table, and may drop it' END,
           CASE WHEN has_table_privilege(c.oid, 'UPDATE') THEN 'may update users' END,
           CASE WHEN has_table_privilege(c.oid, 'DELETE') THEN 'may delete users' END,
           CASE WHEN has_table_privilege(c.oid, 'TRUNCATE') THEN 'may truncate users' END
         ], NULL) AS powers,
         c.oid IS NOT NULL AS "hasTable",
         coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'), false) AS "maySelect",
         coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'INSERT'), false) AS "mayInsert",
         EXISTS (
           SELECT FROM pg_index i
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'identity_provider_user_id'
            WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
              AND i.indpred IS NULL AND i.indkey::text = a.attnum::text
         ) AS "isUnique",
         m.oid IS NOT NULL AS "hasRecord",
         coalesce(has_table_privilege(m.oid, 'SELECT'), false) AS "mayReadRecord"
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
  powers: z.array(z.string()),
  hasTable: z.boolean(),
  maySelect: z.boolean(),
  mayInsert: z.boolean(),
  isUnique: z.boolean(),
  hasRecord: z.boolean(),
  mayReadRecord: z.boolean(),
});

type Facts = z.infer<typeof Facts> & {
  readonly announcedProcess: number | undefined;
  readonly milliseconds: number;
  readonly migrations: readonly MigrationRow[];
};

const Rows = z.array(
  z.object({ migration_name: z.string(), checksum: z.string(), finished_at: z.nullable(z.date()) }),
);

const readFacts = (): Promise<Facts> =>
  withConnection(async ({ announcedProcess, rows }) => {
    const facts = Facts.parse((await rows(FACTS))[0]);
    const migrations = facts.mayReadRecord
      ? Rows.parse(
          await rows(
            'SELECT migration_name, checksum, finished_at FROM public._prisma_migrations WHERE rolled_back_at IS NULL',
          ),
        )
      : [];
    return {
      ...facts,
      announcedProcess,
      migrations,
      milliseconds: await median(ROUNDS, () => rows('SELECT 1')),
    };
  });

/** What PostgreSQL, Node and the driver call the ways not to get in. */
const REFUSALS: readonly (readonly [RegExp, string, string])[] = [
  [/^28/, 'refuses the role or its password', 'Copy the connection string anew; percent-encode the password'],
  [
    /^3D000$/,
    'there is no database of that name',
    'Correct the name behind the last / of DATABASE_URL, or create it',
  ],
  [/^53300$/, 'has no connection left', 'Put a pooler in front, or raise max_connections'],
  [/^57P03$/, 'is starting up or shutting down', 'Wait a moment, then run this again'],
  [
    /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/,
    'out of reach',
    'Correct host and port of DATABASE_URL; let this machine through the firewall',
  ],
  [
    /CERT|SSL|TLS/i,
    'no TLS connection comes about',
    'Set sslmode of DATABASE_URL as the host of the database says; its certificate must be one that Node trusts',
  ],
  [
    /time|Connection terminated/i,
    'does not answer in time',
    'See that the database is up and near; let this machine through the firewall; if it scales to zero, run this again',
  ],
];

function explain(error: unknown): Finding {
  const code = codeOf(error);
  for (const [pattern, finding, remedy] of REFUSALS)
    if (pattern.test(code)) return failure(`${finding} (${code})`, remedy);
  return failure(
    `cannot be used (${code})`,
    'Look up the code in the documentation of PostgreSQL, appendix A',
  );
}

function migrated({ hasTable, hasRecord, mayReadRecord, migrations, role }: Facts): Finding {
  if (hasRecord && !mayReadRecord)
    return warning(
      `the role may not read which migrations were applied; the users table is ${hasTable ? 'there' : 'NOT there'}`,
      `As the owner: GRANT SELECT ON _prisma_migrations TO ${role}`,
    );
  const { pending, failed, edited } = migrationState(migrations);
  const apply = 'Run npm run db:deploy, as the role that owns the tables';
  if (failed.length > 0)
    return failure(
      `failed: ${failed.join(', ')}`,
      `Correct the cause, run npx prisma migrate resolve --rolled-back ${failed[0]}, then npm run db:deploy`,
    );
  if (edited.length > 0)
    return failure(
      `edited after it was applied: ${edited.join(', ')}`,
      'Restore the file, and put the change in a migration of its own',
    );
  if (pending.length > 0) return failure(`pending: ${pending.join(', ')}`, apply);
  return ok(`all of ${migrations.length} applied`);
}

function permitted({ hasTable, maySelect, mayInsert, readOnly, role }: Facts): Finding {
  if (readOnly)
    return failure(
      'is read-only: a replica, or a database without write access',
      'Make DATABASE_URL name the primary; or take back default_transaction_read_only',
    );
  if (!hasTable) return skipped('there is no users table');
  if (maySelect && mayInsert) return ok('the role may SELECT from users and INSERT');
  return failure(
    `the role may not ${[maySelect ? '' : 'SELECT', mayInsert ? '' : 'INSERT'].filter(Boolean).join(' and ')}`,
    `As the owner: GRANT USAGE ON SCHEMA public TO ${role}; GRANT SELECT, INSERT ON users TO ${role}`,
  );
}

const unique = ({ hasTable, isUnique }: Facts): Finding => {
  if (!hasTable) return skipped('there is no users table');
  return isUnique
    ? ok('one row an identity provider user, by a unique index')
    : failure(
        'no unique index on users.identity_provider_user_id: nobody new is linked',
        'Delete duplicates, then: CREATE UNIQUE INDEX users_identity_provider_user_id_key ON users (identity_provider_user_id)',
      );
};

const zone = ({ zone: name, role }: Facts): Finding =>
  /^(?:Etc\/)?(?:UTC|UCT|GMT|Universal|Zulu|Greenwich)$/i.test(name)
    ? ok(name)
    : warning(
        `${name}, not UTC: the driver misreads timestamptz columns of your own tables`,
        `As the owner: ALTER ROLE ${role} SET timezone = 'UTC'`,
      );

const power = ({ powers }: Facts): Finding =>
  powers.length === 0
    ? ok('no more than it needs')
    : warning(
        powers.join(', '),
        'Give the service a role of its own with SELECT and INSERT on users (docs/doctor.md), another one to migrations',
      );

/**
 * Whether a pooler stands in between. It says so itself where it gives connections process ids of its own; one that pools
 * by transaction also lends a connection's process to another transaction.
 */
async function pooled({ announcedProcess, process, maxConnections }: Facts): Promise<Finding> {
  if (announcedProcess !== undefined && announcedProcess === process)
    return ok(
      `none: ${maxConnections} connections are enough for ${Math.floor(maxConnections / MAX_CONNECTIONS)} processes`,
    );
  return (await lendsProcess()) ? ok('by transaction') : ok('in between');
}

const Process = z.tuple([z.object({ pid: z.number() })]);

const lendsProcess = (): Promise<boolean> =>
  withConnection((one) =>
    withConnection(async (other) => {
      const processOf = async (session: typeof one) =>
        Process.parse(await session.rows('SELECT pg_backend_pid() AS pid'))[0].pid;
      const first = await processOf(one);
      // What is not committed is taken back by the end of the connection.
      await other.rows('BEGIN');
      return (await processOf(other)) === first || (await processOf(one)) !== first;
    }),
  );

/** The database, by the service's own pool. `isLocal`: of the local stack, whose one role owns everything. */
export async function examineDatabase(isLocal: boolean): Promise<Examined[]> {
  const reached = valid(PARTS.database)
    ? await attempt(readFacts, explain)
    : { fault: skipped('DATABASE_URL is not valid') };
  const judge = (name: string, of: (facts: Facts) => Finding | Promise<Finding>) =>
    check(name, () => ('value' in reached ? of(reached.value) : skipped('the database cannot be used')));
  return Promise.all([
    check('database', () =>
      'value' in reached
        ? ok(`answers, ${reached.value.milliseconds} ms a round trip from here, the median of ${ROUNDS}`)
        : reached.fault,
    ),
    judge('migrations', migrated),
    judge('database rights', permitted),
    judge('database role', (facts) =>
      isLocal ? skipped("the local stack's own owns everything") : power(facts),
    ),
    judge('unique users', unique),
    judge('time zone', zone),
    judge('pooler', pooled),
  ]);
}
