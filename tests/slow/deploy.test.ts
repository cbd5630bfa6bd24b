import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startPostgres } from '../../dev/postgres/server';
import { startProcess } from '../../dev/system/start-process';
import { query } from '../harness/dependencies/database';
import { deliver, me, register, send, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

const project = fileURLToPath(new URL('../..', import.meta.url));
const root = temporaryFolder();
const server = stopAfterAll(await startPostgres({ folder: path.join(root, 'postgres'), durable: false }));
let databases = 0;

/** Creates an empty database and returns its URL. */
async function newDatabase(): Promise<string> {
  databases += 1;
  await server.createDatabase(`deploy_${databases}`);
  return server.url(`deploy_${databases}`);
}

/** Runs the command `npm run db:deploy`. */
async function runScript(
  databaseUrl: string | undefined,
  variables: Record<string, string> = {},
  cwd: string = project,
) {
  const env = { ...process.env, MIGRATION_DATABASE_URL: '', DATABASE_URL: databaseUrl, ...variables };
  const args = ['--import', import.meta.resolve('tsx'), path.join(project, 'commands/db-deploy.ts')];
  const { exited, written } = startProcess(process.execPath, args, { cwd, env });
  return { status: await exited, ...written };
}

test('A preview migrates its own database only if MIGRATE_PREVIEW_DATABASE is set, and never that of MIGRATION_DATABASE_URL', async () => {
  const [url, production] = [await newDatabase(), await newDatabase()];
  const preview = { VERCEL_ENV: 'preview', MIGRATION_DATABASE_URL: production };
  const skipped = await runScript(url, preview);
  expect(skipped).toMatchObject({ status: 0, stdout: '', stderr: expect.stringContaining('NOT MIGRATED') });
  expect(await query(url, `SELECT to_regclass('users') AS users`)).toEqual([{ users: null }]);
  const own = await runScript(url, { ...preview, MIGRATE_PREVIEW_DATABASE: '1' });
  expect(own).toMatchObject({ status: 0, stdout: expect.stringMatching(/^applied \d+_create_users$/m) });
  expect(await query(production, `SELECT to_regclass('users') AS users`)).toEqual([{ users: null }]);
  expect(await runScript(url, { VERCEL_ENV: 'production' })).toEqual({
    status: 0,
    stdout: 'nothing to apply: the database is up to date\n',
    stderr: '',
  });
});

test('The commands read the .env files that the application reads', async () => {
  writeFileSync(path.join(root, '.env.production'), 'DATABASE_URL=mysql://from-the-file');
  expect(await runScript(undefined, { NODE_ENV: 'production' }, root)).toMatchObject({
    status: 1,
    stderr: 'DATABASE_URL must be a postgresql:// URL.\n',
  });
});

test.each([
  ['a missing variable', undefined, 'DATABASE_URL is not set'],
  ['a value that is not a URL', 'hidden-password', 'DATABASE_URL must be a postgresql:// URL'],
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
    /^The migrations were not deployed: the role of (MIGRATION_)?DATABASE_URL lacks a privilege: permission denied for .+\. Set MIGRATION_DATABASE_URL to the URL of the role that owns the tables \(docs\/deploy\.md\)\.\n$/;

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

  test('The restricted role of docs/deploy.md cannot change or delete users or the history, delete applied migrations, change tables, or create tables or roles', async () => {
    await query(
      ofTheService,
      `INSERT INTO link_changes (kind, operation, changed_by) VALUES ('user', 'a test', 'me')`,
    );
    for (const statement of [
      'UPDATE users SET id = id',
      'DELETE FROM users',
      'TRUNCATE users',
      'UPDATE link_changes SET reason = NULL',
      'DELETE FROM link_changes',
      `INSERT INTO link_changes (kind, operation, changed_by, changed_at) VALUES ('user', 'x', 'me', 'infinity')`,
      `INSERT INTO link_changes (kind, operation, changed_by, counts) VALUES ('user', 'x', 'me', '{"a":"b"}')`,
      'SELECT FROM link_changes',
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

  test('A guarded route, the register route, the webhook and the readiness check work with the restricted role of docs/deploy.md', async () => {
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
