import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Client, escapeIdentifier } from 'pg';
import { errorCode } from '../system/errors';
import { freePort } from '../system/listen';
import { commandLine, endProcess, endWithThisProcess, isAlive, waitUntil } from '../system/processes';
import { findPostgresBinaries, makePrivateFolder, type PostgresBinaries, type ServiceUser } from './binaries';

/** A running PostgreSQL of this project's own. */
export interface EmbeddedPostgres {
  /** Connection string of a database of this server, password included. */
  url(database: string): string;
  /** Creates the database unless it exists. */
  createDatabase(name: string): Promise<void>;
  /** True: a server that an earlier process left running was taken over. */
  readonly adopted: boolean;
  /** Where the cluster is: below the folder asked for, unless the service user cannot reach that one. */
  readonly dataFolder: string;
  /** When it resolves the server is gone, also an adopted one. Stopping twice is stopping once. */
  stop(): Promise<void>;
}

/** What startPostgres needs to know. */
export interface PostgresOptions {
  /** Keeps the cluster; made if absent. One process at a time may use it. */
  readonly folder: string;
  /** Absent: any free port. */
  readonly port?: number;
  /** False: faster, and the data does not survive a crash of the machine. For tests. */
  readonly durable: boolean;
  /** Ends the start: it then rejects with the signal's reason and leaves no server. */
  readonly signal?: AbortSignal;
}

interface Cluster {
  readonly folder: string;
  readonly data: string;
  readonly log: string;
  readonly password: string;
  readonly user: ServiceUser;
}

interface RunningServer {
  readonly pid: number;
  readonly port: number;
}

const startMilliseconds = 60_000;

/**
 * Starts a PostgreSQL over the cluster in `folder`, or takes over the one a crashed process left running there.
 * It listens on 127.0.0.1 only, asks for a password that is kept in the folder, and ends with this process even
 * when that is killed.
 *
 * Rejects with the server's own words when it does not start, and when another live process uses the folder.
 */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const cluster = locateCluster(path.resolve(options.folder));
  const left = await findRunning(cluster, options.signal);
  const server = left ?? (await launch(cluster, options));
  // One that was launched is watched over already, one that was taken over is not.
  const release = endWithThisProcess(server.pid, 'SIGINT');
  writeFileSync(path.join(cluster.folder, 'owner'), String(process.pid));

  const url = (database: string) => connectionString(cluster, server.port, database);
  const shutDown = async () => {
    // SIGINT is PostgreSQL's fast shutdown, SIGQUIT its immediate one.
    await endProcess(server.pid, [
      { signal: 'SIGINT', milliseconds: 15_000 },
      { signal: 'SIGQUIT', milliseconds: 5_000 },
    ]);
    release();
    rmSync(path.join(cluster.folder, 'owner'), { force: true });
  };
  let stopped: Promise<void> | undefined;
  return {
    url,
    adopted: left !== undefined,
    dataFolder: cluster.data,
    async createDatabase(name) {
      try {
        await queryOnce(url('postgres'), `CREATE DATABASE ${escapeIdentifier(name)}`);
      } catch (error) {
        // 42P04: it exists; 23505: it came to exist just now.
        if (!['42P04', '23505'].includes(errorCode(error) ?? '')) throw error;
      }
    },
    stop() {
      stopped ??= shutDown();
      return stopped;
    },
  };
}

function locateCluster(wanted: string): Cluster {
  const isRoot = process.getuid?.() === 0;
  mkdirSync(wanted, { recursive: true });
  const given = realpathSync(wanted);
  chmodSync(given, 0o711);
  if (isRoot) openBelowTemporaryFolder(given);
  const folder = isRoot && !othersMayPass(given) ? substituteFolder(given) : given;
  const data = path.join(folder, 'data');
  const passwordFile = path.join(folder, 'password');
  if (!existsSync(passwordFile)) {
    if (existsSync(data)) throw new Error(`${folder} has lost its password file; remove the folder.`);
    writeFileSync(passwordFile, randomBytes(18).toString('hex'), { mode: 0o600 });
  }
  return {
    folder,
    data,
    log: path.join(folder, 'server.log'),
    password: readFileSync(passwordFile, 'utf8'),
    user: isRoot ? serviceUser(data) : {},
  };
}

/** PostgreSQL refuses to run as root: the owner of the cluster runs it, at first `nobody`. */
function serviceUser(data: string): ServiceUser {
  const owner = existsSync(data) ? statSync(data) : undefined;
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : { uid: 65534, gid: 65534 };
}

/** What a test keeps below the temporary folder stays there, so that it goes when the test removes its folder. */
function openBelowTemporaryFolder(folder: string): void {
  const temporary = realpathSync(os.tmpdir());
  for (let at = folder; at.startsWith(temporary + path.sep); at = path.dirname(at)) {
    chmodSync(at, (statSync(at).mode & 0o777) | 0o011);
  }
}

function othersMayPass(folder: string): boolean {
  const parent = path.dirname(folder);
  return (statSync(folder).mode & 0o001) !== 0 && (parent === folder || othersMayPass(parent));
}

function substituteFolder(wanted: string): string {
  const name = createHash('sha256').update(wanted).digest('hex').slice(0, 16);
  const folder = path.join(realpathSync(os.tmpdir()), `embedded-postgres-${name}`);
  makePrivateFolder(folder);
  return folder;
}

/** The server over this cluster that an earlier process left, waiting for one that is starting up or shutting down. */
async function findRunning(cluster: Cluster, signal?: AbortSignal): Promise<RunningServer | undefined> {
  let found: RunningServer | undefined;
  await waitUntil(
    async () => {
      const server = readPidFile(cluster);
      if (!server || !isAlive(server.pid)) return true;
      if (isAnotherProgram(cluster, server.pid)) {
        // PostgreSQL would take the process for a server, and refuse to start.
        rmSync(pidFile(cluster), { force: true });
        return true;
      }
      const owner = Number(readIfPresent(path.join(cluster.folder, 'owner')));
      if (owner > 0 && owner !== process.pid && isAlive(owner)) {
        throw new Error(
          `The database in ${cluster.folder} is in use by process ${owner}; stop that one first.`,
        );
      }
      if (await answersAt(cluster, server.port)) found = server;
      return found !== undefined;
    },
    20_000,
    signal,
  );
  return found;
}

/** After a crash or a reboot the id in the file may by now be that of some other process. */
function isAnotherProgram(cluster: Cluster, pid: number): boolean {
  const command = commandLine(pid);
  return command !== undefined && !command.includes(cluster.data);
}

async function answersAt(cluster: Cluster, port: number): Promise<boolean> {
  try {
    const [row] = await queryOnce(connectionString(cluster, port, 'postgres'), 'SHOW data_directory');
    return row?.['data_directory'] === cluster.data;
  } catch {
    return false; // not yet, or not any more
  }
}

async function launch(cluster: Cluster, options: PostgresOptions): Promise<RunningServer> {
  const binaries = findPostgresBinaries(cluster.user);
  if (!existsSync(cluster.data)) await createCluster(cluster, binaries, options.signal);
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await freePort());
    try {
      return await launchOn(port, cluster, binaries, options);
    } catch (error) {
      // Between asking for a free port and using it, another process may have taken it.
      const portTaken = /could not bind|Address already in use/i.test(String(error));
      if (options.port !== undefined || !portTaken || attempt === 3) throw error;
    }
  }
}

/** Made under another name first, so that a crash half-way leaves no cluster that looks whole. */
async function createCluster(
  { folder, data, user }: Cluster,
  binaries: PostgresBinaries,
  signal?: AbortSignal,
) {
  const unfinished = path.join(folder, 'unfinished');
  rmSync(unfinished, { recursive: true, force: true });
  makePrivateFolder(unfinished);
  const passwordFile = path.join(unfinished, 'password');
  writeFileSync(passwordFile, readFileSync(path.join(folder, 'password')), { mode: 0o600 });
  const made = path.join(unfinished, 'data');
  if (user.uid !== undefined && user.gid !== undefined) {
    chownSync(passwordFile, user.uid, user.gid);
    chownSync(unfinished, user.uid, user.gid);
  }
  const options = ['-U', 'postgres', '--auth=scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-sync'];
  const child = spawn(binaries.initdb, ['-D', made, `--pwfile=${passwordFile}`, ...options], {
    ...user,
    cwd: unfinished,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: startMilliseconds,
    ...(signal ? { signal } : {}),
  });
  const release = child.pid === undefined ? () => {} : endWithThisProcess(child.pid, 'SIGTERM');
  let words = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    words = (words + chunk).slice(-4000);
  });
  try {
    const code = await new Promise((resolve, reject) => {
      child.once('error', reject).once('close', (status, by) => resolve(status ?? by));
    });
    if (code !== 0)
      throw new Error(`The database cluster could not be made (initdb ended with ${code}).\n${words}`);
    renameSync(made, data);
  } finally {
    release();
    rmSync(unfinished, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function launchOn(
  port: number,
  cluster: Cluster,
  { postgres }: PostgresBinaries,
  { durable, signal }: PostgresOptions,
): Promise<RunningServer> {
  signal?.throwIfAborted();
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'timezone=UTC',
    'max_connections=200',
    ...(durable ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']),
  ];
  // A file, not a pipe: a server that outlives this process has somewhere to write to.
  const log = openSync(cluster.log, 'w', 0o600);
  const child = spawn(
    postgres,
    ['-D', cluster.data, '-p', String(port), ...settings.flatMap((s) => ['-c', s])],
    {
      ...cluster.user,
      cwd: cluster.data,
      detached: true, // Ctrl-C must not end it before the processes that use it
      stdio: ['ignore', log, log],
    },
  );
  closeSync(log);
  const { pid } = child;
  if (pid === undefined) throw await spawnError(child);
  const release = endWithThisProcess(pid, 'SIGINT');
  child.unref();
  try {
    const ready = await waitUntil(
      () => {
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`PostgreSQL ended at its start.\n${readIfPresent(cluster.log).slice(-4000)}`);
        }
        const server = readPidFile(cluster);
        return server?.pid === pid && server.ready;
      },
      startMilliseconds,
      signal,
    );
    if (!ready)
      throw new Error(`PostgreSQL was not ready in time.\n${readIfPresent(cluster.log).slice(-4000)}`);
  } catch (error) {
    await endProcess(pid, [{ signal: 'SIGQUIT', milliseconds: 5_000 }]);
    release();
    throw error;
  }
  return { pid, port };
}

function spawnError(child: ChildProcess): Promise<Error> {
  return new Promise((resolve) => {
    child.once('error', (cause) =>
      resolve(new Error(`PostgreSQL cannot be run: ${cause.message}`, { cause })),
    );
  });
}

function pidFile(cluster: Cluster): string {
  return path.join(cluster.data, 'postmaster.pid');
}

/** What the server says of itself in postmaster.pid: line 1 its process id, 4 its port, 8 its state. */
function readPidFile(cluster: Cluster): (RunningServer & { ready: boolean }) | undefined {
  const lines = readIfPresent(pidFile(cluster)).split('\n');
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  return pid > 0 && port > 0 ? { pid, port, ready: lines[7]?.trim() === 'ready' } : undefined;
}

function readIfPresent(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return '';
    throw error;
  }
}

function connectionString({ password }: Cluster, port: number, database: string): string {
  return `postgresql://postgres:${password}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}

async function queryOnce(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 60_000 });
  client.on('error', () => {}); // an idle connection that breaks shows in the next query
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}
