import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, escapeLiteral } from 'pg';

interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** A row of `_prisma_migrations`. */
interface MigrationRow {
  readonly migration_name: string;
  readonly checksum: string;
  readonly finished_at: Date | null;
}

/**
 * The key of Prisma's advisory lock. This module uses the same key, so it never migrates at the same time as `prisma migrate`.
 */
const migrateLock = 72707369;
const lockWaitSeconds = 60;
/** SQLSTATE of a statement that exceeded `lock_timeout`. */
const LOCK_NOT_AVAILABLE = '55P03';
const createTable = `CREATE TABLE _prisma_migrations (
  id                  VARCHAR(36) PRIMARY KEY NOT NULL,
  checksum            VARCHAR(64) NOT NULL,
  finished_at         TIMESTAMPTZ,
  migration_name      VARCHAR(255) NOT NULL,
  logs                TEXT,
  rolled_back_at      TIMESTAMPTZ,
  started_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
  applied_steps_count INTEGER NOT NULL DEFAULT 0
)`;
const markFailedAsRolledBack =
  'UPDATE _prisma_migrations SET rolled_back_at = now() WHERE finished_at IS NULL AND rolled_back_at IS NULL';
const committedMigrations = fileURLToPath(new URL('../../prisma/migrations', import.meta.url));

/**
 * Applies every pending migration, each in its own transaction. Returns the names of the applied migrations. Uses the table,
 * the checksums and the lock of `prisma migrate deploy`. That command then finds no pending migration.
 *
 * Rejects if
 * - a migration fails. Earlier migrations stay applied, and the failure is recorded in the format of Prisma;
 * - a migration failed in an earlier call and is not marked as rolled back, unless `retryFailed` is set;
 * - a migration was edited after it was applied;
 * - another process holds the lock for longer than a minute.
 *
 * If no migration is pending and `retryFailed` is false, the database role needs only SELECT on `_prisma_migrations`.
 *
 * Several processes may call this function at the same time. Only one of them applies a given migration. The lock and the
 * migration belong to one transaction, so the function works with a transaction pooler. A migration therefore cannot contain
 * statements that PostgreSQL does not allow in a transaction or a function, such as CREATE INDEX CONCURRENTLY, COPY … FROM
 * STDIN, COMMIT, or SELECT … INTO as the last statement of the migration. If a migration changes session settings, they are
 * reset after the migration.
 */
export async function deployMigrations(
  databaseUrl: string,
  folder = committedMigrations,
  { retryFailed = false } = {},
): Promise<string[]> {
  const migrations = readMigrations(folder);
  return withClient(databaseUrl, async (client) => {
    const applied: string[] = [];
    for (;;) {
      const name = await applyNext(client, migrations, retryFailed);
      if (name === undefined) return applied;
      applied.push(name);
    }
  });
}

/**
 * Returns the names of the migrations that are not applied, or undefined if the role may not read `_prisma_migrations`. Only
 * reads, and does not wait for a lock. Rejects if the database cannot be used.
 */
export async function pendingMigrations(
  databaseUrl: string,
  folder = committedMigrations,
): Promise<string[] | undefined> {
  const names = readMigrations(folder).map(({ name }) => name);
  return withClient(databaseUrl, async (client) => {
    const { rows: rights } = await client.query<{ readable: boolean | null }>(
      `SELECT has_table_privilege(to_regclass('_prisma_migrations'), 'SELECT') AS readable`,
    );
    const readable = rights[0]?.readable;
    if (readable === false) return undefined;
    if (!readable) return names; // The table does not exist, so no migration has been applied.
    const { rows } = await client.query<Pick<MigrationRow, 'migration_name'>>(
      'SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
    );
    const applied = new Set(rows.map((row) => row.migration_name));
    return names.filter((name) => !applied.has(name));
  });
}

/** Names of migrations by their state. */
interface MigrationState {
  readonly pending: readonly string[];
  readonly failed: readonly string[];
  readonly edited: readonly string[];
}

/**
 * Compares rows of `_prisma_migrations` with the migrations in the repository. `rows` must not contain rows of rolled-back
 * migrations.
 */
function migrationState(rows: readonly MigrationRow[], migrations: readonly Migration[]): MigrationState {
  const recorded = new Map(rows.map((row) => [row.migration_name, row]));
  const isEdited = ({ name, sql }: Migration) => {
    const row = recorded.get(name);
    return row !== undefined && !matches(sql, row.checksum);
  };
  return {
    pending: migrations.filter(({ name }) => !recorded.has(name)).map(({ name }) => name),
    failed: rows.filter((row) => !row.finished_at).map((row) => row.migration_name),
    edited: migrations.filter(isEdited).map(({ name }) => name),
  };
}

async function withClient<T>(databaseUrl: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 15_000,
    // This timeout is long, because a migration may rewrite a table. The timeout also ends a query if the server becomes
    // unreachable.
    query_timeout: 15 * 60_000,
    keepAlive: true,
  });
  client.on('error', () => {}); // Ignored, because the query in flight also rejects if the connection breaks.
  try {
    await client.connect();
    return await use(client);
  } finally {
    await client.end(); // If an error left a transaction open, this also rolls it back, which releases the lock.
  }
}

function readMigrations(folder: string): Migration[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({ name, sql: readFileSync(path.join(folder, name, 'migration.sql'), 'utf8') }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Applies the first pending migration in its own transaction and returns its name. Returns undefined if none is pending. */
async function applyNext(
  client: Client,
  migrations: readonly Migration[],
  retryFailed: boolean,
): Promise<string | undefined> {
  await client.query('BEGIN');
  await takeLock(client);
  const pending = firstPending(migrations, await recordedMigrations(client, retryFailed));
  if (!pending) {
    await client.query('COMMIT');
    return undefined;
  }
  const id = randomUUID();
  await client.query(
    'INSERT INTO _prisma_migrations (id, checksum, migration_name, started_at) VALUES ($1, $2, $3, clock_timestamp())',
    [id, checksum(pending.sql), pending.name],
  );
  await client.query('SAVEPOINT before_migration');
  try {
    await client.query(insideTransaction(pending));
    await client.query('RESET ALL; RESET SESSION AUTHORIZATION');
  } catch (error) {
    await client.query('ROLLBACK TO SAVEPOINT before_migration');
    await client.query('UPDATE _prisma_migrations SET logs = $2 WHERE id = $1', [id, messageOfError(error)]);
    await client.query('COMMIT');
    throw new Error(
      `Migration ${pending.name} failed and was rolled back: ${messageOfError(error)}. ${howToResolve(pending)}`,
      {
        cause: error,
      },
    );
  }
  await client.query(
    'UPDATE _prisma_migrations SET finished_at = clock_timestamp(), applied_steps_count = 1 WHERE id = $1',
    [id],
  );
  await client.query('COMMIT');
  return pending.name;
}

/**
 * Wraps the migration in a DO block. If a statement in the block begins or ends a transaction, PostgreSQL rejects the statement
 * and rolls back the earlier statements of the block.
 */
function insideTransaction({ sql }: Migration): string {
  return `DO ${escapeLiteral(`BEGIN EXECUTE ${escapeLiteral(sql)}; END`)}`;
}

/** Takes the lock until the transaction ends. This lock conflicts with Prisma's session lock on the same key. */
async function takeLock(client: Client): Promise<void> {
  await client.query(`SET LOCAL lock_timeout = '${lockWaitSeconds}s'`);
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${migrateLock})`);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === LOCK_NOT_AVAILABLE)) throw error;
    throw new Error(
      `Another migration has held the lock of this database for ${lockWaitSeconds} s. Wait for it to end, then try again.`,
      { cause: error },
    );
  }
  await client.query('SET LOCAL lock_timeout TO DEFAULT');
}

async function recordedMigrations(client: Client, retryFailed: boolean): Promise<MigrationRow[]> {
  // CREATE TABLE IF NOT EXISTS requires the CREATE privilege even if the table exists.
  const { rows: found } = await client.query<{ exists: boolean }>(
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS exists`,
  );
  if (!found[0]?.exists) await client.query(createTable);
  if (retryFailed) await client.query(markFailedAsRolledBack);
  const { rows } = await client.query<MigrationRow>(
    'SELECT migration_name, checksum, finished_at FROM _prisma_migrations WHERE rolled_back_at IS NULL',
  );
  return rows;
}

function firstPending(
  migrations: readonly Migration[],
  rows: readonly MigrationRow[],
): Migration | undefined {
  const { pending, failed, edited } = migrationState(rows, migrations);
  for (const name of failed) throw new Error(`Migration ${name} failed earlier. ${howToResolve({ name })}`);
  for (const name of edited) {
    throw new Error(
      `Migration ${name} was edited after it was applied. Restore it and put the change in a new migration.`,
    );
  }
  return migrations.find(({ name }) => name === pending[0]);
}

function checksum(sql: string): string {
  return createHash('sha256').update(sql).digest('hex');
}

/** Returns true if a recorded checksum matches a migration. Ignores the difference between LF and CRLF, as Prisma does. */
function matches(sql: string, recorded: string): boolean {
  const unix = sql.replaceAll('\r\n', '\n');
  return [sql, unix, unix.replaceAll('\n', '\r\n')].some((text) => checksum(text) === recorded);
}

function howToResolve({ name }: { readonly name: string }): string {
  return (
    `Correct the cause, mark the failure as rolled back (\`npx prisma migrate resolve --rolled-back ${name}\`, ` +
    'or set rolled_back_at of its row in _prisma_migrations), then deploy again.'
  );
}

/**
 * Returns the message of an error. If the connection to a host with several addresses fails, the error is an AggregateError
 * without a message. In that case, returns the messages of the errors in the AggregateError.
 */
export function messageOfError(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.map(messageOfError).join(', ');
  return error instanceof Error ? error.message : String(error);
}
