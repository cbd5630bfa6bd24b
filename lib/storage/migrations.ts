import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, type DatabaseError, escapeLiteral } from 'pg';
import { databaseOptions } from '../base/database-url';

interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** A row of `_prisma_migrations`. */
interface MigrationRow {
  readonly name: string;
  readonly checksum: string;
  readonly isFinished: boolean;
}

/** As with Prisma, migrations create tables in `public`, also if the role has another schema first in its search path. */
const SEARCH_PATH = `SELECT set_config(
  'search_path', concat_ws(', ', 'public', nullif(current_setting('search_path'), '')), true)`;
/** Key of Prisma's advisory lock. This module uses the same key, so it never migrates at the same time as `prisma migrate`. */
const MIGRATE_LOCK = 72707369;
const LOCK_WAIT_SECONDS = 60;
const LOCK_NOT_AVAILABLE = '55P03';
const DUPLICATE_TABLE = '42P07';
const NO_HISTORY =
  '. The tables exist, but _prisma_migrations does not say so. Restore that table too, or deploy to an empty database ' +
  'and import the users (docs/deploy.md, "If a step was forgotten"). Nothing was changed';
const CREATE_TABLE = `CREATE TABLE public._prisma_migrations (
  id                  VARCHAR(36) PRIMARY KEY NOT NULL,
  checksum            VARCHAR(64) NOT NULL,
  finished_at         TIMESTAMPTZ,
  migration_name      VARCHAR(255) NOT NULL,
  logs                TEXT,
  rolled_back_at      TIMESTAMPTZ,
  started_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
  applied_steps_count INTEGER NOT NULL DEFAULT 0
)`;
const FOLDER = fileURLToPath(new URL('../../prisma/migrations', import.meta.url));

/**
 * Applies every pending migration, each in its own transaction. Returns the names of the applied migrations. Uses the table,
 * the checksums and the lock of `prisma migrate deploy`. That command then finds no pending migration.
 *
 * Rejects if a migration fails, which leaves no change of it (earlier migrations stay applied), if Prisma has recorded a failed
 * migration, if a migration was edited after it was applied, or if another process holds the lock for longer than a minute. If
 * no migration is pending, the database role needs only SELECT on `_prisma_migrations`.
 *
 * Several processes may call this function at the same time. The lock and the migration belong to one transaction, so the
 * function works with a transaction pooler. A migration therefore cannot contain statements that PostgreSQL does not allow in a
 * transaction or a function, such as CREATE INDEX CONCURRENTLY, COPY … FROM STDIN or COMMIT.
 */
export async function deployMigrations(databaseUrl: string, folder = FOLDER): Promise<string[]> {
  const migrations = readMigrations(folder);
  return withClient(databaseUrl, async (client) => {
    const applied: string[] = [];
    for (;;) {
      const name = await applyNext(client, migrations);
      if (name === undefined) return applied;
      applied.push(name);
    }
  });
}

/** Returns the names of the pending migrations, or undefined if the role may not read `_prisma_migrations`. Waits for no lock. */
export async function pendingMigrations(
  databaseUrl: string,
  folder = FOLDER,
): Promise<readonly string[] | undefined> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ readable: boolean | null }>(
      `SELECT has_table_privilege(to_regclass('public._prisma_migrations'), 'SELECT') AS readable`,
    );
    const readable = rows[0]?.readable;
    if (readable === false) return undefined;
    // Without the table, no migration has been applied.
    const recorded = readable ? await readRows(client) : [];
    const applied = new Set(recorded.flatMap(({ name, isFinished }) => (isFinished ? [name] : [])));
    return readMigrations(folder).flatMap(({ name }) => (applied.has(name) ? [] : [name]));
  });
}

async function withClient<T>(databaseUrl: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({
    ...databaseOptions(databaseUrl),
    connectionTimeoutMillis: 15_000,
    // A migration may rewrite a table. The timeout also ends a query if the server becomes unreachable.
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
async function applyNext(client: Client, migrations: readonly Migration[]): Promise<string | undefined> {
  await client.query('BEGIN');
  // Waits for the lock, which lasts until the transaction ends and conflicts with Prisma's session lock on the same key.
  await client.query(`SET LOCAL lock_timeout = '${LOCK_WAIT_SECONDS}s'`);
  await client.query(`SELECT pg_advisory_xact_lock(${MIGRATE_LOCK})`).catch(async (error: DatabaseError) => {
    throw error.code === LOCK_NOT_AVAILABLE ? await describeLock(client) : error;
  });
  await client.query('SET LOCAL lock_timeout TO DEFAULT');
  await client.query(SEARCH_PATH);
  // CREATE TABLE IF NOT EXISTS requires the CREATE privilege even if the table exists.
  const { rows } = await client.query(`SELECT WHERE to_regclass('public._prisma_migrations') IS NULL`);
  if (rows.length > 0) await client.query(CREATE_TABLE);
  const pending = firstPending(migrations, await readRows(client));
  if (pending) {
    const { name, sql } = pending;
    // PostgreSQL rejects a statement that begins or ends a transaction in a DO block.
    const block = `DO ${escapeLiteral(`BEGIN EXECUTE ${escapeLiteral(sql)}; END`)}`;
    await client.query(block).catch((cause: DatabaseError) => {
      const remedy = cause.code === DUPLICATE_TABLE ? NO_HISTORY : '';
      throw new Error(`Migration ${name} failed and was rolled back: ${cause.message}${remedy}`, { cause });
    });
    await client.query('RESET ALL; RESET SESSION AUTHORIZATION');
    await client.query(
      `INSERT INTO public._prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
       VALUES ($1, $2, $3, clock_timestamp(), 1)`,
      [randomUUID(), checksumOf(sql), name],
    );
  }
  await client.query('COMMIT');
  return pending?.name;
}

/** Returns an error that names the session that holds the lock. */
async function describeLock(client: Client): Promise<Error> {
  await client.query('ROLLBACK');
  const { rows } = await client.query<{ pid: number; role: string }>(
    `SELECT pid, usename AS role FROM pg_locks JOIN pg_stat_activity USING (pid)
     WHERE locktype = 'advisory' AND objid = ${MIGRATE_LOCK} AND granted AND datname = current_database()`,
  );
  const holders = rows.map(({ pid, role }) => `session ${pid} of the role ${role}`).join(', ');
  return new Error(
    `Another migration has held the lock for ${LOCK_WAIT_SECONDS} s (${holders || 'it has just ended'}). ` +
      'Wait for it. If it does not end, run SELECT pg_terminate_backend(<session>). Then deploy again.',
  );
}

async function readRows(client: Client): Promise<MigrationRow[]> {
  const { rows } = await client.query<MigrationRow>(
    `SELECT migration_name AS name, checksum, finished_at IS NOT NULL AS "isFinished"
     FROM public._prisma_migrations WHERE rolled_back_at IS NULL`,
  );
  return rows;
}

function firstPending(migrations: readonly Migration[], rows: readonly MigrationRow[]) {
  const checksums = new Map(rows.map(({ name, checksum }) => [name, checksum]));
  const failed = rows.find(({ isFinished }) => !isFinished);
  if (failed)
    throw new Error(
      `Prisma has recorded that migration ${failed.name} failed. Correct the cause and set rolled_back_at of its row in _prisma_migrations.`,
    );
  const edited = migrations.find(({ name, sql }) => !matches(sql, checksums.get(name)));
  if (edited)
    throw new Error(
      `Migration ${edited.name} was edited after it was applied. Restore it and put the change in a new migration.`,
    );
  return migrations.find(({ name }) => !checksums.has(name));
}

const checksumOf = (sql: string): string => createHash('sha256').update(sql).digest('hex');

/** Returns true if a migration matches its checksum, or has none. Ignores the difference between LF and CRLF, as Prisma does. */
function matches(sql: string, checksum: string | undefined): boolean {
  const unix = sql.replaceAll('\r\n', '\n');
  const texts = [sql, unix, unix.replaceAll('\n', '\r\n')];
  return checksum === undefined || texts.some((text) => checksumOf(text) === checksum);
}
