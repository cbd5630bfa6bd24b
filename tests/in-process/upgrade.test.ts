import { execFileSync, fork } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deployMigrations } from '#lib/storage/migrations';
import { BUILD_TIME_VALUES } from '../harness/build';
import { serverOfThisRun } from '../harness/dependencies/database';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { temporaryFolder } from '../vitest/temporary-folder';

// Runs release 1.0.0 beside this version, with one database and one cache. The code of the release is in the history of the
// repository. It runs with the present packages, and without Next.js: the calls of its guard and of its register route.

const RELEASE = '10d76bea48442ea443ccf6015c65eeb2253f6a64';
const folder = temporaryFolder();
/** Returns false in a clone without the history. */
function extractRelease(): boolean {
  try {
    const archive = execFileSync(
      'git',
      ['archive', RELEASE, 'lib', 'prisma', 'prisma.config.ts', 'package.json'],
      {
        maxBuffer: 2 ** 26,
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
    return true;
  } catch {
    process.stderr.write(`Skipped: tests/in-process/upgrade.test.ts needs the commit ${RELEASE}.\n`);
    return false;
  }
}
const hasRelease = extractRelease();

const WORKER = `
  import { registerByIdentityProviderUserId } from './lib/register';
  import { resolveUserId } from './lib/resolve-user-id';
  process.on('message', async ({ call, route, id }) => {
    const result = route === 'guard' ? resolveUserId(id) : registerByIdentityProviderUserId(id).then(({ userId }) => userId);
    process.send({ call, userId: await result.catch(String) });
  });
  process.on('disconnect', () => process.exit());`;

type Route = 'guard' | 'register';
/** Returns the internal id of a user, or the text of an error. */
type Version = (route: Route, id: string) => Promise<string | undefined>;

/** Starts a process with the code of the release. */
function startRelease(environment: Readonly<Record<string, string>>): Version {
  symlinkSync(path.resolve('node_modules'), path.join(folder, 'node_modules'));
  const prisma = path.resolve('node_modules/prisma/build/index.js');
  execFileSync(process.execPath, [prisma, 'generate'], { cwd: folder, stdio: 'ignore' });
  writeFileSync(path.join(folder, 'worker.ts'), WORKER);
  const child = fork('worker.ts', {
    cwd: folder,
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, ...BUILD_TIME_VALUES, ...environment },
  });
  afterAll(() => child.disconnect());
  const waiting = new Map<number, (userId: string) => void>();
  child.on('message', ({ call, userId }: { call: number; userId: string }) => waiting.get(call)?.(userId));
  let calls = 0;
  return (route, id) =>
    new Promise((resolve) => {
      calls += 1;
      waiting.set(calls, resolve);
      child.send({ call: calls, route, id });
    });
}

/** Registers new users until it ends, each at once by both routes of all versions. Returns the users whose results differ. */
function startLoad(name: string, versions: readonly Version[]) {
  const linked = new Map<string, string>();
  const wrong: unknown[] = [];
  let isEnding = false;
  const done = Promise.all(
    [0, 1, 2].map(async (worker) => {
      for (let user = 0; !isEnding; user += 1) {
        const id = `user_${name}_${worker}_${user}`;
        const calls = versions.flatMap((version) => [version('guard', id), version('register', id)]);
        const [userId = '', ...others] = new Set(await Promise.all(calls));
        if (!/^[0-9a-f-]{36}$/.test(userId) || others.length > 0) wrong.push([id, userId, ...others]);
        linked.set(id, userId);
      }
    }),
  );
  return {
    linked,
    grows: () => {
      const before = linked.size;
      return expect.poll(() => linked.size).toBeGreaterThan(before + 20);
    },
    async end() {
      isEnding = true;
      await done;
      expect(wrong).toEqual([]);
    },
  };
}

describe.skipIf(!hasRelease)('Release 1.0.0 beside this version', async () => {
  const { database, kv } = await startInProcess({ ...serverOfThisRun(), template: 'template0' });
  const url = String(database.pool.options.connectionString);
  const modules = await importAsProcess(async () => ({
    ...(await import('#lib/register')),
    ...(await import('#lib/internal-id')),
  }));
  const current: Version = (route, id) =>
    route === 'guard'
      ? modules.resolveId('user', id, 0).then((resolved) => resolved?.id)
      : modules.registerByIdentityProviderUserId(id).then((registration) => registration?.userId);

  let released: Version = current;
  beforeAll(async () => {
    released = startRelease({ ...kv.environment, DATABASE_URL: database.url });
    // Loads the code of the release. There are no tables yet, so the call fails.
    await released('guard', 'user_first');
  });

  test('Before, during and after the migrations, and after a return, the release registers users without an error, and each user has one internal id', async () => {
    await deployMigrations(url, path.join(folder, 'prisma/migrations'));
    const old = startLoad('old', [released]);
    await old.grows();
    expect((await deployMigrations(url)).length).toBeGreaterThan(5);
    await old.grows();
    const both = startLoad('both', [released, current]);
    await both.grows();
    await both.end();
    await old.end();
    const returned = startLoad('returned', [released]);
    await returned.grows();
    await returned.end();
    const all = [...old.linked, ...both.linked, ...returned.linked];
    const { rows } = await database.pool.query('SELECT identity_provider_user_id AS user, id FROM users');
    expect(new Map(rows.map(({ user, id }) => [user, id]))).toEqual(new Map(all));

    // The release links a forgotten user again, and fails for a previous id. Nothing may be forgotten or moved before it has ended.
    await database.markForgotten('user_forgotten');
    expect(await current('register', 'user_forgotten')).toBeUndefined();
    expect(await released('register', 'user_forgotten')).toMatch(/^[0-9a-f-]{36}$/);
    const [[id = '', userId = ''] = []] = all;
    await database.pool.query(
      `INSERT INTO previous_ids VALUES ('user_previous', $1, $2, 'run', '2099-01-01Z')`,
      [userId, id],
    );
    expect(await current('register', 'user_previous')).toBe(userId);
    expect(await released('register', 'user_previous')).toMatch(/Error/);
  }, 120_000);
});
