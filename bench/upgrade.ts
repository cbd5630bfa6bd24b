import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { extract } from 'tar';
import { arrive } from '../tests/harness/arrivals';
import { build, withoutServiceVariables } from '../tests/harness/build';
import { me, tokenFor } from '../tests/harness/requests';
import { type ServiceProcess, startServiceProcess, type TestService } from '../tests/harness/service';
import { withService } from './with-service';

/**
 * `npm run upgrade`: the last release and this checkout side by side over one database and one cache, both beginning first, with
 * this checkout's `npm run db:deploy` between, while users arrive at whoever runs. Ends with 1 over any answer that is no
 * success, a user without exactly one row and one id, or an id that one version stored in the cache and the other did not find.
 *
 * Installs and builds the release in a temporary folder, which takes minutes. Needs the history back to it.
 */
const USERS = 150;
const CONCURRENCY = 12;
const INSTALL_MS = 900_000;
const HERE = '.';

const execute = promisify(execFile);

/** The newest version that the changelog calls released, and the commit that did so. */
async function lastRelease(): Promise<{ version: string; commit: string }> {
  const version = /^## (\d+\.\d+\.\d+) /m.exec(await readFile('CHANGELOG.md', 'utf8'))?.[1];
  if (version === undefined) throw new Error('CHANGELOG.md has no heading of a released version.');
  const { stdout: shallow } = await execute('git', ['rev-parse', '--is-shallow-repository']);
  if (shallow.trim() !== 'false') {
    throw new Error(
      `The history here is cut off: get all of it, back to ${version} (git fetch --unshallow).`,
    );
  }
  const search = ['log', '--format=%H', `-S## ${version} `, '--', 'CHANGELOG.md'];
  const commit = (await execute('git', search)).stdout.trim().split('\n').at(-1);
  if (!commit) throw new Error(`The history here has no commit that released ${version}.`);
  return { version, commit };
}

/** Puts what a commit holds into a folder, with what it depends on and its production build. */
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

/** Runs `npm run db:deploy` of a checkout. */
async function deploy(folder: string, databaseUrl: string): Promise<void> {
  const { stdout } = await execute('npm', ['run', '--silent', 'db:deploy'], {
    cwd: folder,
    env: { ...withoutServiceVariables(), DATABASE_URL: databaseUrl },
    timeout: 120_000,
  });
  console.log(stdout.trim());
}

const problems: string[] = [];

/** Has users arrive at these processes: those of a `seed` are new the first time, and must keep their ids the second. */
async function traffic(service: TestService, processes: readonly ServiceProcess[], seed: number) {
  const options = { users: USERS, concurrency: CONCURRENCY, seed };
  const figures = await arrive({ ...service, processes }, options);
  if (figures.rows !== USERS) problems.push(`${figures.rows} rows for ${USERS} users`);
  const { usersWithoutOneRow, usersWithSeveralIds, usersCreatedTwice } = figures;
  if (usersWithoutOneRow + usersWithSeveralIds + usersCreatedTwice > 0) problems.push('not one id a user');
  problems.push(...figures.errors);
  return `${figures.requests} requests`;
}

/** What one version stored in the cache, the other finds there, and says the same of. */
async function shareCache(service: TestService, one: ServiceProcess, other: ServiceProcess): Promise<void> {
  for (const [writer, reader] of [
    [one, other],
    [other, one],
  ] as const) {
    const token = tokenFor(service.idp, `user_shared_${writer.pid}_${reader.pid}`);
    const written = await me(writer.url, token);
    const read = await me(reader.url, token);
    const same = Object(written.body).userId === Object(read.body).userId;
    const hit = read.headers.get('server-timing')?.includes('cache;desc=hit');
    if (!same || !hit) problems.push('an id that the other version stored in the cache is not found there');
  }
}

const { version, commit } = await lastRelease();
const parent = await mkdtemp(path.join(os.tmpdir(), 'identity-link-tests-release-'));
const release = path.join(parent, 'release');
try {
  console.log(`installing and building ${version}, commit ${commit}`);
  await prepare(commit, release);
  await withService(
    {
      checkout: release,
      async databaseUrl({ pool, url }) {
        // The database is a copy of one that this checkout has migrated.
        await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
        await deploy(release, url);
        return url;
      },
    },
    async (service) => {
      const { database, environment, processes } = service;
      const [old] = processes;
      if (!old) throw new Error('The release does not run');
      const started: ServiceProcess[] = [];
      const start = async (folder: string) => {
        const process = await startServiceProcess(environment, folder);
        started.push(process);
        return process;
      };
      /** Traffic at these processes while something else is done. */
      const during = async <T>(what: string, seed: number, at: ServiceProcess[], work: () => Promise<T>) => {
        const [result, said] = await Promise.all([work(), traffic(service, at, seed)]);
        console.log(`${what}: ${said}`);
        return result;
      };
      const nothing = async () => undefined;
      try {
        await during(`${version} alone, the database migrated`, 1, [old], () => deploy(HERE, database.url));
        const today = await during(`${version} alone, today's started`, 2, [old], () => start(HERE));
        await during('both, new users', 3, [old, today], nothing);
        await during('both, the same users again', 3, [today, old], nothing);
        await during(`both, the users of ${version}`, 1, [today, old], nothing);
        await shareCache(service, old, today);
        await during(`today's alone, ${version} stopped`, 4, [today], () => old.stop());
        const back = await during(`today's alone, ${version} started`, 5, [today], () => start(release));
        await during('both, new users', 6, [today, back], nothing);
        await during('both, the users of today’s', 4, [back, today], nothing);
        await shareCache(service, today, back);
        await during(`${version} alone, today's stopped`, 6, [back], () => today.stop());
      } finally {
        for (const process of started) await process.stop();
      }
    },
  );
} finally {
  await rm(parent, { recursive: true, force: true, maxRetries: 3 });
}
if (problems.length > 0) {
  console.error(`Broken. ${[...new Set(problems)].slice(0, 10).join(', ')}`);
  process.exitCode = 1;
}
