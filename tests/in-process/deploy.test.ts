import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import path from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { deployMigrations, pendingMigrations } from '#lib/storage/migrations';
import { createTestDatabase, serverOfThisRun } from '../harness/dependencies/database';
import { temporaryFolder } from '../vitest/temporary-folder';

// A file system may list a folder in any order, so a deployment must sort the migrations. The mock reverses the order, so that a
// deployment that does not sort them fails.
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  return {
    ...fs,
    readdirSync: (...args: never[]) => Reflect.apply(fs.readdirSync, fs, args).toReversed(),
  };
});

const committed = path.resolve('prisma/migrations');
const root = temporaryFolder();
/** A database without tables. */
const database = await createTestDatabase({ ...serverOfThisRun(), template: 'template0' });
afterAll(() => database.drop());
const url = String(database.pool.options.connectionString);

afterEach(async () => {
  vi.restoreAllMocks();
  await database.pool.query(`
    DROP SCHEMA IF EXISTS other CASCADE;
    DROP SCHEMA public CASCADE;
    CREATE SCHEMA public;
    GRANT USAGE ON SCHEMA public TO PUBLIC;
    DROP ROLE IF EXISTS migrator_of_the_test`);
});

function newMigrations(files: Record<string, string>): string {
  const folder = mkdtempSync(path.join(root, 'migrations-'));
  for (const [name, sql] of Object.entries(files)) writeMigration(folder, name, sql);
  writeFileSync(path.join(folder, 'migration_lock.toml'), 'provider = "postgresql"\n');
  return folder;
}

function writeMigration(folder: string, name: string, sql: string) {
  mkdirSync(path.join(folder, name), { recursive: true });
  writeFileSync(path.join(folder, name, 'migration.sql'), sql);
}

const query = async (statement: string) =>
  (await database.pool.query<Record<string, unknown>>(statement)).rows;

const rowsOf = () =>
  query(
    `SELECT migration_name AS name, checksum, logs, applied_steps_count AS steps, rolled_back_at AS rolled_back,
            finished_at >= started_at AS finished FROM _prisma_migrations ORDER BY started_at`,
  );

test('A deployment applies the committed migrations once and writes the same rows to _prisma_migrations as Prisma', async () => {
  const names = readdirSync(committed, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const expected = names.map(({ name }) => name).sort();
  expect(await pendingMigrations(url)).toEqual(expected);
  expect(await deployMigrations(url)).toEqual(expected);
  expect(await deployMigrations(url)).toEqual([]);
  expect(await rowsOf()).toEqual(
    expected.map((name) => ({
      name,
      checksum: createHash('sha256')
        .update(readFileSync(path.join(committed, name, 'migration.sql')))
        .digest('hex'),
      logs: null,
      steps: 1,
      rolled_back: null,
      finished: true,
    })),
  );
  expect(await query('SELECT count(*)::int AS users FROM users')).toEqual([{ users: 0 }]);
});

test('Concurrent deployments apply each migration once, and all succeed', async () => {
  const folder = newMigrations({
    // The migration sleeps for 0.2 s, so that the other deployments start before it ends.
    '1_table': 'CREATE TABLE note (id INT); SELECT pg_sleep(0.2);',
    '2_row': 'INSERT INTO note VALUES (1);',
  });
  const results = await Promise.all(Array.from({ length: 8 }, () => deployMigrations(url, folder)));
  expect(results.flat().sort()).toEqual(['1_table', '2_row']);
  expect(await query('SELECT * FROM note')).toEqual([{ id: 1 }]);
  expect(await rowsOf()).toHaveLength(2);
});

test('A deployment that cannot get the lock names the session that holds it', async () => {
  const prisma = await database.pool.connect();
  onTestFinished(() => prisma.release(true));
  await prisma.query('SELECT pg_advisory_lock(72707369)');
  const { rows } = await prisma.query('SELECT pg_backend_pid() AS pid, current_user AS role');
  const query = Client.prototype.query;
  vi.spyOn(Client.prototype, 'query').mockImplementation(function (this: Client, text: string) {
    return Reflect.apply(query, this, [text.replace(/lock_timeout = '60s'/, "lock_timeout = '10ms'")]);
  });
  await expect(deployMigrations(url, newMigrations({}))).rejects.toThrow(
    `Another migration has held the lock for 60 s (session ${rows[0].pid} of the role ${rows[0].role}). Wait for it.`,
  );
});

test('With sslrootcert=system, a deployment does not send the password without TLS', async () => {
  const encrypted = `${url}?sslmode=verify-full&sslrootcert=system&application_name=test`;
  await expect(deployMigrations(encrypted)).rejects.toThrow('The server does not support SSL connections');
});

test('A role whose search path has a schema of its own first deploys to the schema public, and finds the migrations there', async () => {
  const { url: asOwner } = await database.createRole(
    'CREATE SCHEMA AUTHORIZATION $role; GRANT CREATE ON SCHEMA public TO $role',
  );
  const all = await pendingMigrations(asOwner);
  expect(await deployMigrations(asOwner)).toEqual(all);
  expect([await deployMigrations(asOwner), await deployMigrations(url)]).toEqual([[], []]);
  expect([await pendingMigrations(asOwner), await pendingMigrations(url)]).toEqual([[], []]);
  const tables = await query(`SELECT DISTINCT schemaname AS schema FROM pg_tables
    WHERE tablename IN ('users', 'previous_ids', '_prisma_migrations')`);
  expect(tables).toEqual([{ schema: 'public' }]);
});

test('A deployment to tables without a history changes nothing and names the remedy', async () => {
  await query('CREATE TABLE users (id UUID)');
  await expect(deployMigrations(url)).rejects.toThrow(
    /relation "users" already exists\. The tables exist, but _prisma_migrations does not say so\. Restore/,
  );
  expect(await query(`SELECT to_regclass('_prisma_migrations') AS history`)).toEqual([{ history: null }]);
});

test('A failed migration leaves no change and no row. Earlier migrations stay applied, and a corrected migration is applied by the next deployment', async () => {
  const folder = newMigrations({
    '1_good': 'CREATE TABLE note (id INT)',
    '2_bad': 'CREATE TABLE half (id INT); INSERT INTO note VALUES (1); SELECT 1/0;',
    '3_later': 'CREATE TABLE later (id INT)',
  });
  await expect(deployMigrations(url, folder)).rejects.toThrow(
    'Migration 2_bad failed and was rolled back: division by zero',
  );
  expect(await query(`SELECT to_regclass('half') AS half, to_regclass('later') AS later`)).toEqual([
    { half: null, later: null },
  ]);
  expect(await query('SELECT * FROM note')).toEqual([]);
  expect(await rowsOf()).toMatchObject([{ name: '1_good', steps: 1, finished: true }]);
  writeMigration(folder, '2_bad', 'CREATE TABLE half (id INT)');
  expect(await deployMigrations(url, folder)).toEqual(['2_bad', '3_later']);
});

test('A deployment fails while a migration that Prisma has recorded as failed is not marked as rolled back', async () => {
  const folder = newMigrations({ '1_table': 'CREATE TABLE note (id INT)' });
  await deployMigrations(url, folder);
  await query('DROP TABLE note; UPDATE _prisma_migrations SET finished_at = NULL');
  await expect(deployMigrations(url, folder)).rejects.toThrow(/1_table failed.*set rolled_back_at/);
  await query('UPDATE _prisma_migrations SET rolled_back_at = now()');
  expect(await deployMigrations(url, folder)).toEqual(['1_table']);
});

test('A deployment fails if an applied migration was edited, but accepts other line endings', async () => {
  const folder = newMigrations({ '1_table': 'CREATE TABLE note (\nid INT\n);\n' });
  await deployMigrations(url, folder);
  writeMigration(folder, '1_table', 'CREATE TABLE note (\r\nid INT\r\n);\r\n');
  expect(await deployMigrations(url, folder)).toEqual([]);
  appendFileSync(path.join(folder, '1_table', 'migration.sql'), '-- more\n');
  writeMigration(folder, '2_later', 'CREATE TABLE later (id INT)');
  await expect(deployMigrations(url, folder)).rejects.toThrow('1_table was edited after it was applied');
  expect(await query(`SELECT to_regclass('later') AS later`)).toEqual([{ later: null }]);
});

test.each(['COMMIT;', 'ROLLBACK; BEGIN;', 'SAVEPOINT here;', 'DO $$ BEGIN COMMIT; END $$;'])(
  'A migration with a transaction command is rolled back: %s',
  async (end) => {
    const folder = newMigrations({ '1_end': `CREATE TABLE note (id INT); ${end}` });
    await expect(deployMigrations(url, folder)).rejects.toThrow('Migration 1_end failed and was rolled back');
    expect(await query(`SELECT to_regclass('note') AS note`)).toEqual([{ note: null }]);
  },
);

test.each<[string, string]>([
  [
    'a function body',
    "CREATE FUNCTION one() RETURNS INT AS $$\nBEGIN\n  RETURN 1;\nEND;\n$$ LANGUAGE plpgsql;\n-- commit;\nSELECT 'it''s';",
  ],
  ['no statement', ''],
  ['another schema', 'CREATE SCHEMA other; SET search_path = other; CREATE TABLE note (id INT);'],
  ['another role', 'CREATE ROLE migrator_of_the_test; SET ROLE migrator_of_the_test;'],
])('A migration may contain text like COMMIT, change settings or be empty: %s', async (_what, sql) => {
  const folder = newMigrations({ '1_odd': sql, '2_table': 'CREATE TABLE after (id INT);' });
  expect(await deployMigrations(url, folder)).toEqual(['1_odd', '2_table']);
  expect(await query(`SELECT to_regclass('public.after') IS NOT NULL AS after`)).toEqual([{ after: true }]);
  expect(await deployMigrations(url, folder)).toEqual([]);
});

test('The pending migrations are found without a write to the database, unless the role may not read the applied ones', async () => {
  const folder = newMigrations({ '1_good': 'CREATE TABLE note (id INT)' });
  expect(await pendingMigrations(url, folder)).toEqual(['1_good']);
  expect(await query(`SELECT to_regclass('_prisma_migrations') AS record`)).toEqual([{ record: null }]);
  await deployMigrations(url, folder);
  expect(await pendingMigrations(url, folder)).toEqual([]);
  const { url: asReader } = await database.createRole('');
  expect(await pendingMigrations(asReader, folder)).toBeUndefined();
});

test('If the connection breaks, a deployment fails. Earlier migrations stay applied, and the current migration leaves no row in _prisma_migrations', async () => {
  const keepAlive = vi.spyOn(Socket.prototype, 'setKeepAlive');
  const folder = newMigrations({
    '1_good': 'CREATE TABLE note (id INT)',
    '2_break': 'SELECT pg_terminate_backend(pg_backend_pid())',
  });
  await expect(deployMigrations(url, folder)).rejects.toThrow();
  expect(await rowsOf()).toMatchObject([{ name: '1_good', finished: true }]);
  // Without TCP keep-alive, a deployment does not notice a broken connection while it waits for a long migration.
  expect(keepAlive).toHaveBeenCalledWith(true, expect.any(Number));
});
