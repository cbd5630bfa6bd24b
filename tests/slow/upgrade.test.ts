import { execFileSync, fork } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { deployMigrations } from '#lib/storage/migrations';
import { BUILD_TIME_VALUES } from '../harness/build';
import { serverOfThisRun } from '../harness/dependencies/database';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { forgetModules } from '../vitest/forget-modules';
import { temporaryFolder } from '../vitest/temporary-folder';

// Runs the guard's and the register route's calls of release 1.0.0, in a process of its own with the present packages.
const RELEASE = '10d76bea48442ea443ccf6015c65eeb2253f6a64';
const WORKER = `
  import { registerByIdentityProviderUserId as register } from './lib/register';
  import { resolveUserId } from './lib/resolve-user-id';
  process.on('message', async ({ call, id }) => {
    const results = [resolveUserId(id), register(id).then(({ userId }) => userId)].map((each) => each.catch(String));
    process.send({ call, results: await Promise.all(results) });
  });
  process.on('disconnect', () => process.exit());`;

/** Registers a user by the guard and the register route. Returns the internal ids, or the texts of errors. */
type Version = (id: string) => Promise<(string | undefined)[]>;

// Other test files of this worker may have loaded the modules of the service.
forgetModules();
afterAll(forgetModules);
const folder = temporaryFolder();
const { database, kv } = await startInProcess({ ...serverOfThisRun(), template: 'template0' });
const url = String(database.pool.options.connectionString);
const modules = await importAsProcess(async () => ({
  ...(await import('#lib/register')),
  resolveId: (await import('#lib/link')).link.resolve,
}));
const current: Version = async (id) => {
  const calls = [modules.resolveId('user', id, 0), modules.registerByIdentityProviderUserId(id)];
  return (await Promise.all(calls)).map((result) => result.id);
};
let release: Version | undefined;

beforeAll(() => {
  try {
    const files = ['lib', 'prisma', 'prisma.config.ts', 'package.json'];
    const input = execFileSync('git', ['archive', RELEASE, ...files], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    execFileSync('tar', ['-x', '-C', folder], { input });
  } catch {
    process.stderr.write(`No test of the upgrade: the history lacks the commit ${RELEASE}\n`);
    return;
  }
  symlinkSync(path.resolve('node_modules'), path.join(folder, 'node_modules'));
  writeFileSync(path.join(folder, 'worker.ts'), WORKER);
  const prisma = path.resolve('node_modules/prisma/build/index.js');
  execFileSync(process.execPath, [prisma, 'generate'], { cwd: folder, stdio: 'ignore' });
  const env = { ...process.env, ...BUILD_TIME_VALUES, ...kv.environment, DATABASE_URL: database.url };
  const execArgv = ['--import', 'tsx'];
  const child = fork('worker.ts', {
    cwd: folder,
    execArgv,
    env,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  afterAll(() => child.disconnect());
  const waiting: ((results: string[]) => void)[] = [];
  child.on('message', ({ call, results }: { call: number; results: string[] }) => waiting[call]?.(results));
  release = (id) => new Promise((resolve) => child.send({ call: waiting.push(resolve) - 1, id }));
});

/** Registers new users by all versions at once until it ends. Returns their internal ids. */
function startLoad(name: string, ...versions: readonly Version[]) {
  const linked = new Map<string, unknown>();
  let isEnding = false;
  const register = async (worker: number) => {
    for (let user = 0; !isEnding; user += 1) {
      const id = `user_${name}_${worker}_${user}`;
      const results = new Set((await Promise.all(versions.map((version) => version(id)))).flat());
      linked.set(id, [...results].join());
    }
  };
  const done = Promise.all([0, 1, 2].map(register));
  return {
    grows: (before = linked.size) => expect.poll(() => linked.size).toBeGreaterThan(before + 20),
    async end() {
      isEnding = true;
      await done;
      return linked;
    },
  };
}

test('Before, during and after the migrations, and after a return, release 1.0.0 registers users without an error, and each user has one internal id. Both versions do so while a migration of the team adds a column', async ({
  skip,
}) => {
  if (release === undefined) return skip();
  await deployMigrations(url, path.join(folder, 'prisma/migrations'));
  const old = startLoad('old', release);
  await old.grows();
  expect(await deployMigrations(url)).toHaveLength(1);
  await old.grows();
  const both = startLoad('both', release, current);
  await both.grows();
  const migrations = path.join(folder, 'migrations');
  cpSync('prisma/migrations', migrations, { recursive: true });
  mkdirSync(path.join(migrations, '29990101000000_add_note'));
  const statement = 'ALTER TABLE users ADD COLUMN note TEXT';
  writeFileSync(path.join(migrations, '29990101000000_add_note/migration.sql'), statement);
  expect(await deployMigrations(url, migrations)).toHaveLength(1);
  await both.grows();
  const users = [...(await both.end()), ...(await old.end())];
  const returned = startLoad('returned', release);
  await returned.grows();
  users.push(...(await returned.end()));
  const { rows } = await database.pool.query('SELECT identity_provider_user_id AS user, id FROM users');
  expect(new Map(rows.map(({ user, id }) => [user, id]))).toEqual(new Map(users));

  // The release links a forgotten user again, and fails for a previous id. Until it has ended, nothing may be forgotten or moved.
  await database.markForgotten('user_forgotten');
  expect(await current('user_forgotten')).toEqual([undefined, undefined]);
  expect(await release('user_forgotten')).toEqual(
    await database.idsOf('user_forgotten').then(([id]) => [id, id]),
  );
  await database.pool.query(
    `INSERT INTO previous_ids VALUES ('user', 'user_previous', $1, $2, 'run', '2099-01-01Z')`,
    [users[0]?.[1], users[0]?.[0]],
  );
  expect(await release('user_previous')).toEqual([1, 2].map(() => expect.stringContaining('Error')));
}, 120_000);
