import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { extract } from 'tar';
import { withService } from '../../bench/with-service';
import { build, withoutServiceVariables } from '../../tests/harness/build';
import { describeHistory } from '../../tests/harness/history';
import { generateLoad } from '../../tests/harness/load-generator';
import { me, tokenFor } from '../../tests/harness/requests';
import { type ServiceProcess, startServiceProcess, type TestService } from '../../tests/harness/service';

/**
 * `npm run upgrade`: runs the last release and this checkout. Both versions share one database and one cache. While requests
 * arrive, this command migrates the database with `npm run db:deploy`, upgrades to this checkout and rolls back to the release.
 * Exits with 1 in these cases:
 * - A response is not a success.
 * - A user does not have exactly one row and one id.
 * - One version does not find an id that the other version cached.
 *
 * Installs and builds the release in a temporary folder, which takes minutes. Requires a git checkout that is not
 * shallow.
 */
const USERS = 150;
const CONCURRENCY = 12;
const INSTALL_MS = 900_000;
const HERE = '.';

const execute = promisify(execFile);

/** Returns the latest version in the changelog, and the commit that added the heading of this version. */
async function findLastRelease(): Promise<{ version: string; commit: string }> {
  const version = /^## (\d+\.\d+\.\d+) /m.exec(await readFile('CHANGELOG.md', 'utf8'))?.[1];
  if (version === undefined) throw new Error('CHANGELOG.md does not contain a released version.');
  const { stdout: shallow } = await execute('git', ['rev-parse', '--is-shallow-repository']);
  if (shallow.trim() !== 'false') {
    throw new Error(`The git history does not reach back to ${version}. Run: git fetch --unshallow`);
  }
  const search = ['log', '--format=%H', `-S## ${version} `, '--', 'CHANGELOG.md'];
  const commit = (await execute('git', search)).stdout.trim().split('\n').at(-1);
  if (!commit) throw new Error(`The git history does not contain the release ${version}.`);
  return { version, commit };
}

/** Extracts a commit into a folder. Installs the dependencies and runs the build in this folder. */
async function prepare(commit: string, folder: string): Promise<void> {
  const file = `${folder}.tar`;
  await execute('git', ['archive', `--output=${file}`, commit]);
  await mkdir(folder);
  await extract({ file, cwd: folder });
  await execute('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], {
    cwd: folder,
    env: withoutServiceVariables(),
    timeout: INSTALL_MS,
  });
  await build(folder);
}

/** Runs `npm run db:deploy` in a checkout. */
async function deploy(folder: string, databaseUrl: string): Promise<void> {
  const { stdout } = await execute('npm', ['run', '--silent', 'db:deploy'], {
    cwd: folder,
    env: { ...withoutServiceVariables(), DATABASE_URL: databaseUrl },
    timeout: 120_000,
  });
  console.log(stdout.trim());
}

const problems: string[] = [];

/**
 * Sends requests to the processes. The number `seed` determines the users of these requests. A call with the `seed` of an
 * earlier call uses the same users. `generateLoad` returns a violation if the id in a response differs from the id in the
 * user's row.
 */
async function sendTraffic(service: TestService, processes: readonly ServiceProcess[], seed: number) {
  const options = { users: USERS, concurrency: CONCURRENCY, seed };
  const figures = await generateLoad({ ...service, processes }, options);
  if (figures.rows !== USERS) problems.push(`${figures.rows} rows for ${USERS} users`);
  problems.push(...figures.violations, ...figures.errors);
  return describeHistory(figures.requests, figures.violations);
}

/** Checks that each version finds the ids that the other version has cached. */
async function checkSharedCache(
  service: TestService,
  one: ServiceProcess,
  other: ServiceProcess,
): Promise<void> {
  for (const [writer, reader] of [
    [one, other],
    [other, one],
  ] as const) {
    const token = tokenFor(service.idp, `user_shared_${writer.pid}_${reader.pid}`);
    const written = await me(writer.url, token);
    const read = await me(reader.url, token);
    const same = Object(written.body).userId === Object(read.body).userId;
    const hit = read.headers.get('server-timing')?.includes('cache;desc=hit');
    if (!same || !hit) problems.push('a version does not find an id that the other version cached');
  }
}

const { version, commit } = await findLastRelease();
const parent = await mkdtemp(path.join(os.tmpdir(), 'identity-link-tests-release-'));
const release = path.join(parent, 'release');
try {
  console.log(`Installing and building ${version}, commit ${commit}`);
  await prepare(commit, release);
  await withService(
    {
      checkout: release,
      async databaseUrl({ pool, url }) {
        // The test database has the tables of this checkout. The release must start with its own tables.
        await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
        await deploy(release, url);
        return url;
      },
    },
    async (service) => {
      const { database, environment, processes } = service;
      const [old] = processes;
      if (!old) throw new Error('The release is not running.');
      const started: ServiceProcess[] = [];
      const start = async (folder: string) => {
        const process = await startServiceProcess(environment, folder);
        started.push(process);
        return process;
      };
      /** Sends traffic to the processes while `work` runs. */
      const during = async <T>(step: string, seed: number, at: ServiceProcess[], work: () => Promise<T>) => {
        const [result, requests] = await Promise.all([work(), sendTraffic(service, at, seed)]);
        console.log(`${step}: ${requests}`);
        return result;
      };
      const nothing = async () => undefined;
      try {
        await during(`requests to ${version} during the migration`, 1, [old], () =>
          deploy(HERE, database.url),
        );
        const current = await during(`requests to ${version} while the checkout starts`, 2, [old], () =>
          start(HERE),
        );
        await during('requests to both versions by new users', 3, [old, current], nothing);
        await during(
          'requests to both versions by the users of the previous step',
          3,
          [current, old],
          nothing,
        );
        await during(
          `requests to both versions by users that ${version} registered`,
          1,
          [current, old],
          nothing,
        );
        await checkSharedCache(service, old, current);
        await during(`requests to the checkout while ${version} stops`, 4, [current], () => old.stop());
        const back = await during(`requests to the checkout while ${version} starts`, 5, [current], () =>
          start(release),
        );
        await during('requests to both versions by new users', 6, [current, back], nothing);
        await during(
          'requests to both versions by users that the checkout registered',
          4,
          [back, current],
          nothing,
        );
        await checkSharedCache(service, current, back);
        await during(`requests to ${version} while the checkout stops`, 6, [back], () => current.stop());
      } finally {
        for (const process of started) await process.stop();
      }
    },
  );
} finally {
  await rm(parent, { recursive: true, force: true, maxRetries: 3 });
}
if (problems.length > 0) {
  console.error(`Failed: ${[...new Set(problems)].slice(0, 10).join(', ')}`);
  process.exitCode = 1;
}
