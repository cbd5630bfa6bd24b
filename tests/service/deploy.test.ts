import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { startPostgres } from '../../dev/postgres/server';
import { deployMigrations, pendingMigrations } from '../../lib/migrations/deploy';
import { deliver, me, register, send, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const project = fileURLToPath(new URL('../..', import.meta.url));
const committed = path.join(project, 'prisma', 'migrations');
const root = mkdtempSync(path.join(os.tmpdir(), 'deploy-test-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const server = stopAfterAll(await startPostgres({ folder: path.join(root, 'postgres'), durable: false }));
let databases = 0;
/** Creates an empty database and returns its URL. */

async function newDatabase(): Promise<string> {
  databases += 1;
  await server.createDatabase(`deploy_${databases}`);
  return server.url(`deploy_${databases}`);
}

/** Returns a new folder with the given migrations. The keys of `files` are the names of the migrations. */
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

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

async function query(url: string, statement: string) {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

/** Returns the rows of _prisma_migrations, the table in which Prisma records the applied and the failed migrations. */
const rowsOf = (url: string) =>
  query(
    url,
    `SELECT migration_name AS name, checksum, logs, applied_steps_count AS steps, rolled_back_at AS rolled_back,
            finished_at >= started_at AS finished FROM _prisma_migrations ORDER BY started_at`,
  );

/** Runs the command `npm run db:deploy`. */
function runScript(databaseUrl: string | undefined, variables: Record<string, string> = {}) {
  const env = { ...process.env, MIGRATION_DATABASE_URL: '', DATABASE_URL: databaseUrl, ...variables };
  return new Promise<{ status: number; stdout: string; stderr: string }>((resolve) => {
    const args = ['--import', 'tsx', 'commands/db-deploy.ts'];
    execFile(process.execPath, args, { cwd: project, env, timeout: 60_000 }, (error, stdout, stderr) => {
      const status = error ? Number(error.code) : 0;
      resolve({ status, stdout, stderr });
    });
  });
}

test('A deployment applies the committed migrations once and writes the same rows to _prisma_migrations as Prisma', async () => {
  const url = await newDatabase();
  const names = readdirSync(committed, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const expected = names.map(({ name }) => name).sort();
  expect(await deployMigrations(url)).toEqual(expected);
  expect(await deployMigrations(url)).toEqual([]);
  expect(await rowsOf(url)).toEqual(
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
  expect(await query(url, 'SELECT count(*)::int AS users FROM users')).toEqual([{ users: 0 }]);
});

test('Concurrent deployments apply each migration once, and all succeed', async () => {
  const url = await newDatabase();
  const folder = newMigrations({
    // The migration sleeps for 0.2 s, so that the other deployments start before the migration ends.
    '1_table': 'CREATE TABLE note (id INT); SELECT pg_sleep(0.2);',
    '2_row': 'INSERT INTO note VALUES (1);',
  });
  const results = await Promise.all(Array.from({ length: 8 }, () => deployMigrations(url, folder)));
  expect(results.flat().sort()).toEqual(['1_table', '2_row']);
  expect(await query(url, 'SELECT * FROM note')).toEqual([{ id: 1 }]);
  expect(await rowsOf(url)).toHaveLength(2);
});

test('A deployment waits for the advisory lock of Prisma', async () => {
  const url = await newDatabase();
  const prisma = await connect(url);
  await prisma.query('SELECT pg_advisory_lock(72707369)');
  const folder = newMigrations({ '1_table': 'CREATE TABLE note (id INT)' });
  let ended = false;
  const deployment = deployMigrations(url, folder).finally(() => {
    ended = true;
  });
  const waiting = async () => (await query(url, 'SELECT 1 FROM pg_locks WHERE NOT granted')).length === 1;
  await expect.poll(waiting).toBe(true);
  expect(ended).toBe(false);
  await prisma.query('SELECT pg_advisory_unlock(72707369)');
  expect(await deployment).toEqual(['1_table']);
});

test('A deployment rolls a failed migration back and records it as failed. The record blocks further deployments until an operator sets its column rolled_back_at', async () => {
  const url = await newDatabase();
  const folder = newMigrations({
    '1_good': 'CREATE TABLE note (id INT)',
    '2_bad': 'CREATE TABLE half (id INT); INSERT INTO note VALUES (1); SELECT 1/0;',
    '3_later': 'CREATE TABLE later (id INT)',
  });
  await expect(deployMigrations(url, folder)).rejects.toThrow(
    /2_bad failed and was rolled back: division by zero/,
  );
  expect(await query(url, `SELECT to_regclass('half') AS half, to_regclass('later') AS later`)).toEqual([
    { half: null, later: null },
  ]);
  expect(await query(url, 'SELECT * FROM note')).toEqual([]);
  expect(await rowsOf(url)).toMatchObject([
    { name: '1_good', steps: 1, finished: true },
    {
      name: '2_bad',
      steps: 0,
      finished: null,
      rolled_back: null,
      logs: expect.stringContaining('division by zero'),
    },
  ]);

  writeMigration(folder, '2_bad', 'CREATE TABLE half (id INT)');
  await expect(deployMigrations(url, folder)).rejects.toThrow(
    /2_bad failed earlier.*npx prisma migrate resolve --rolled-back 2_bad/,
  );
  await query(url, `UPDATE _prisma_migrations SET rolled_back_at = now() WHERE migration_name = '2_bad'`);
  expect(await deployMigrations(url, folder)).toEqual(['2_bad', '3_later']);
  expect(await deployMigrations(url, folder)).toEqual([]);
});

test('With `retryFailed`, a deployment applies a corrected migration that failed before', async () => {
  const url = await newDatabase();
  const folder = newMigrations({ '1_bad': 'SELECT 1 / 0', '2_later': 'CREATE TABLE later (id INT)' });
  const deployment = () => deployMigrations(url, folder, { retryFailed: true });
  await expect(deployment()).rejects.toThrow('1_bad failed and was rolled back');
  await expect(deployment()).rejects.toThrow('1_bad failed and was rolled back');
  writeMigration(folder, '1_bad', 'CREATE TABLE good (id INT)');
  expect(await deployment()).toEqual(['1_bad', '2_later']);
  expect(await deployment()).toEqual([]);
});

test('A deployment fails if an applied migration was edited', async () => {
  const url = await newDatabase();
  const folder = newMigrations({ '1_table': 'CREATE TABLE note (id INT);\n' });
  await deployMigrations(url, folder);
  appendFileSync(path.join(folder, '1_table', 'migration.sql'), '-- more\n');
  writeMigration(folder, '2_later', 'CREATE TABLE later (id INT)');
  await expect(deployMigrations(url, folder)).rejects.toThrow('1_table was edited after it was applied');
  expect(await query(url, `SELECT to_regclass('later') AS later`)).toEqual([{ later: null }]);
});

test('A deployment accepts an applied migration with different line endings', async () => {
  const url = await newDatabase();
  const folder = newMigrations({ '1_table': 'CREATE TABLE note (\n  id INT\n);\n' });
  await deployMigrations(url, folder);
  writeMigration(folder, '1_table', 'CREATE TABLE note (\r\n  id INT\r\n);\r\n');
  expect(await deployMigrations(url, folder)).toEqual([]);
});

test.each([
  'COMMIT;',
  'COMMIT; SELECT 1/0;',
  '/* x */ COMMIT;',
  'COMMIT AND CHAIN;',
  'ABORT;',
  'ROLLBACK; BEGIN;',
  'END;',
  'BEGIN;',
  'SAVEPOINT before_migration; RELEASE before_migration;',
  'DO $$ BEGIN COMMIT; END $$;',
])('A migration with a transaction command is rolled back and recorded as failed: %s', async (end) => {
  const url = await newDatabase();
  const folder = newMigrations({ '1_end': `CREATE TABLE note (id INT); ${end}` });
  await expect(deployMigrations(url, folder)).rejects.toThrow(
    /^Migration 1_end failed and was rolled back: /,
  );
  expect(
    await query(
      url,
      `SELECT to_regclass('note') AS note, finished_at, length(logs) > 10 AS logged FROM _prisma_migrations`,
    ),
  ).toEqual([{ note: null, finished_at: null, logged: true }]);
});

test.each<[string, string]>([
  ['CASE', "CREATE VIEW answer AS SELECT CASE WHEN true THEN 1\nEND;\nSELECT 'it''s';"],
  ['BEGIN ATOMIC', 'CREATE FUNCTION answer() RETURNS INT LANGUAGE sql BEGIN ATOMIC SELECT 1;\nEND;'],
  ['a comment', '-- then\n-- commit;\n'],
  ['a comment of several lines', '/*\ncommit;\n*/ SELECT 1;'],
  [
    'a function body',
    'CREATE FUNCTION one() RETURNS INT AS $$\nBEGIN\n  RETURN 1;\nEND;\n$$ LANGUAGE plpgsql;',
  ],
  ['no statement', ''],
  ['another schema', 'CREATE SCHEMA other; SET search_path = other; CREATE TABLE note (id INT);'],
  ['another role', 'CREATE ROLE migrator_of_the_test; SET ROLE migrator_of_the_test;'],
  ['an empty search path, as pg_dump sets it', "SELECT pg_catalog.set_config('search_path', '', false);"],
])(
  'A migration may contain a word such as COMMIT or END that is not a transaction command, change settings, or be empty: %s',
  async (_what, sql) => {
    const url = await newDatabase();
    const folder = newMigrations({ '1_odd': sql, '2_table': 'CREATE TABLE after (id INT);' });
    expect(await deployMigrations(url, folder)).toEqual(['1_odd', '2_table']);
    expect(await query(url, `SELECT to_regclass('public.after') IS NOT NULL AS after`)).toEqual([
      { after: true },
    ]);
    expect(await deployMigrations(url, folder)).toEqual([]);
  },
);

test('A Vercel preview deployment migrates the database of DATABASE_URL only if MIGRATE_PREVIEW_DATABASE is set. It never migrates the database of MIGRATION_DATABASE_URL', async () => {
  const url = await newDatabase();
  const preview = { VERCEL_ENV: 'preview' };
  const skipped = await runScript(url, preview);
  expect(skipped).toMatchObject({ status: 0, stdout: '' });
  expect(skipped.stderr).toContain('NOT MIGRATED');
  expect(await query(url, `SELECT to_regclass('users') AS users`)).toEqual([{ users: null }]);
  const production = await newDatabase();
  const own = await runScript(url, {
    ...preview,
    MIGRATE_PREVIEW_DATABASE: '1',
    MIGRATION_DATABASE_URL: production,
  });
  expect(own.stdout).toMatch(/^applied /);
  expect(await query(production, `SELECT to_regclass('users') AS users`)).toEqual([{ users: null }]);
  expect((await runScript(url, { VERCEL_ENV: 'production' })).stdout).toContain('up to date');
});

test('A deployment of an older version ignores migrations that a newer version applied', async () => {
  const url = await newDatabase();
  const folder = newMigrations({
    '1_table': 'CREATE TABLE note (id INT)',
    '2_newer': 'CREATE TABLE newer (id INT)',
  });
  await deployMigrations(url, folder);
  const older = path.join(root, 'older');
  cpSync(folder, older, { recursive: true });
  rmSync(path.join(older, '2_newer'), { recursive: true });
  expect(await deployMigrations(url, older)).toEqual([]);
});

test('pendingMigrations() writes nothing and returns the pending migrations, or undefined if the role may not read the applied migrations', async () => {
  const url = await newDatabase();
  const folder = newMigrations({ '1_good': 'CREATE TABLE note (id INT)', '2_bad': 'SELECT 1/0' });
  expect(await pendingMigrations(url, folder)).toEqual(['1_good', '2_bad']);
  expect(await query(url, `SELECT to_regclass('_prisma_migrations') AS record`)).toEqual([{ record: null }]);
  await expect(deployMigrations(url, folder)).rejects.toThrow('2_bad failed');
  expect(await pendingMigrations(url, folder)).toEqual(['2_bad']);

  await query(url, `CREATE ROLE reader_of_the_test LOGIN PASSWORD 'secret'`);
  const asReader = Object.assign(new URL(url), { username: 'reader_of_the_test', password: 'secret' }).href;
  expect(await pendingMigrations(asReader, folder)).toBeUndefined();

  await query(url, 'UPDATE _prisma_migrations SET rolled_back_at = now() WHERE finished_at IS NULL');
  writeMigration(folder, '2_bad', 'SELECT 1');
  await deployMigrations(url, folder);
  expect(await pendingMigrations(url, folder)).toEqual([]);
});

test('The db:deploy command prints the migrations that it applied', async () => {
  const url = await newDatabase();
  const first = await runScript(url);
  expect(first).toMatchObject({ status: 0, stderr: '' });
  expect(first.stdout).toMatch(/^applied \d+_create_users$/m);
  expect(await runScript(url)).toEqual({
    status: 0,
    stdout: 'nothing to apply: the database is up to date\n',
    stderr: '',
  });
});

test.each([
  ['a missing variable', undefined, 'DATABASE_URL is not set'],
  ['a value that is not a URL', 'hidden-password', 'DATABASE_URL must be a postgresql:// URL'],
  ['another scheme', 'mysql://me:hidden-password@127.0.0.1/db', 'DATABASE_URL must be a postgresql:// URL'],
  ['an unreachable server', 'postgresql://me:hidden-password@localhost:1/db', 'ECONNREFUSED'],
])('The db:deploy command fails for %s and prints one line without a secret', async (_name, url, words) => {
  const { status, stdout, stderr } = await runScript(url);
  expect(status).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toContain(words);
  expect(stderr.trimEnd().split('\n')).toHaveLength(1);
  expect(stderr).not.toMatch(/hidden-password|:\/\/me/);
});

describe('The restricted role of docs/deploy.md', async () => {
  const page = readFileSync(path.join(project, 'docs', 'deploy.md'), 'utf8');
  const [, written = '', username = ''] = /^```sql\n(CREATE ROLE (\w+) [^`]+)```$/m.exec(page) ?? [];
  const password = 'hidden-password';
  const statements = written.replace("PASSWORD ''", `PASSWORD '${password}'`);
  const as = (role: string, url: string) => Object.assign(new URL(url), { username: role, password }).href;

  const owner = await newDatabase();
  const ofTheService = as(username, owner);
  const permissionError =
    /^The migrations were not deployed: the role of (MIGRATION_)?DATABASE_URL lacks a right: permission denied for .+\. Set MIGRATION_DATABASE_URL to the URL of the role that owns the tables \(docs\/deploy\.md\)\.\n$/;

  test('A deployment as a role without privileges fails with a message that recommends MIGRATION_DATABASE_URL', async () => {
    await query(owner, `CREATE ROLE without_rights LOGIN PASSWORD '${password}'`);
    const { status, stdout, stderr } = await runScript(as('without_rights', owner));
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(permissionError);
    expect(stderr).not.toContain(password);
    expect(await query(owner, `SELECT to_regclass('users') AS users`)).toEqual([{ users: null }]);
  });

  test('A deployment uses the role of MIGRATION_DATABASE_URL instead of the role of DATABASE_URL', async () => {
    const owners = { MIGRATION_DATABASE_URL: owner };
    const { status, stdout } = await runScript(as('without_rights', owner), owners);
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^applied \d+_create_users$/m),
    });
    await query(owner, statements);
    expect((await runScript('not looked at', owners)).stdout).toContain('up to date');
  });

  test('With the restricted role of docs/deploy.md, the db:deploy command succeeds only if no migration is pending', async () => {
    expect(await runScript(ofTheService)).toEqual({
      status: 0,
      stdout: 'nothing to apply: the database is up to date\n',
      stderr: '',
    });
    await query(owner, 'UPDATE _prisma_migrations SET rolled_back_at = now()');
    for (const variables of [{}, { MIGRATION_DATABASE_URL: ofTheService }]) {
      const { status, stderr } = await runScript(ofTheService, variables);
      expect(status).toBe(1);
      expect(stderr).toMatch(permissionError);
    }
    await query(owner, 'UPDATE _prisma_migrations SET rolled_back_at = NULL');
  });

  test('The restricted role of docs/deploy.md cannot change or delete users, delete applied migrations, change tables, or create tables or roles', async () => {
    for (const statement of [
      'UPDATE users SET id = id',
      'DELETE FROM users',
      'TRUNCATE users',
      'DROP TABLE users',
      'ALTER TABLE users ADD COLUMN more TEXT',
      'CREATE TABLE note (id INT)',
      'DELETE FROM _prisma_migrations',
      'CREATE ROLE another',
    ])
      await expect(query(ofTheService, statement), statement).rejects.toThrow(
        /permission denied|must be owner/,
      );
  });

  test('The guard, the register route, the webhook and the readiness check work with the restricted role of docs/deploy.md', async () => {
    const service = await startTestService({
      server: { url: server.url('postgres'), template: new URL(owner).pathname.slice(1) },
      databaseUrl: () => ofTheService,
      environment: { MIGRATION_DATABASE_URL: 'never read by the service' },
    });
    onTestFinished(() => service.stop());
    const token = tokenFor(service.idp, 'user_guarded');
    expect(await me(service.url, token)).toMatchObject({ status: 200 });
    expect(await register(service.url, token, { identityProviderUserId: 'user_registered' })).toMatchObject({
      status: 201,
    });
    expect(await deliver(service.url, userCreated('user_hooked'))).toMatchObject({ status: 200 });
    expect(await send(`${service.url}/health/ready`)).toMatchObject({ status: 200 });
    expect(await query(ofTheService, 'SELECT identity_provider_user_id AS id FROM users ORDER BY 1')).toEqual(
      [{ id: 'user_guarded' }, { id: 'user_hooked' }, { id: 'user_registered' }],
    );
  });
});
