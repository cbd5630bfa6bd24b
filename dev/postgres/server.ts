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
import { commandLine, endProcess, isAlive, killOnExit, waitUntil } from '../system/processes';
import { findPostgresBinaries, makePrivateFolder, type PostgresBinaries, type ServiceUser } from './binaries';

/** A running embedded PostgreSQL server. */
export interface EmbeddedPostgres {
  /** Returns the connection string of a database, including the password. */
  url(database: string): string;
  /** Creates the database if it does not exist. */
  createDatabase(name: string): Promise<void>;
  /** True if an earlier process left the server running. */
  readonly adopted: boolean;
  /**
   * Folder of the cluster (PostgreSQL's data directory). It is inside the requested folder unless the account that runs
   * PostgreSQL cannot access that folder.
   */
  readonly dataFolder: string;
  /** Stops the server, even if it was adopted, and resolves when it has ended. Further calls return the same promise. */
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** Folder for the cluster. It is created if it does not exist. Only one process at a time may use it. */
  readonly folder: string;
  /** Default: any free port. */
  readonly port?: number;
  /** False disables fsync, for tests. The server is then faster, but its data does not survive a system crash. */
  readonly durable: boolean;
  /**
   * Cancels the start. `startPostgres` then rejects with the signal's reason. If the signal interrupts initdb, `startPostgres`
   * rejects with an AbortError instead. A server that this call has launched does not keep running.
   */
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

const startTimeoutMilliseconds = 60_000;

/**
 * Starts PostgreSQL with the cluster in `folder`, or adopts the server that a crashed process left running there.
 * The server listens only on 127.0.0.1 and requires the password that is stored in the folder. A watchdog process ends the
 * server when this process ends, even if this process is killed. A server is left running only if its watchdog is killed too or
 * could not start.
 *
 * Rejects with an error that contains the end of the server's log if the server does not start. Also rejects if another
 * process uses the folder.
 */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const cluster = locateCluster(path.resolve(options.folder));
  const running = await findRunning(cluster, options.signal);
  const server = running ?? (await launch(cluster, options));
  // Registers the server with the watchdog (watchdog.mjs), a process that ends the server when this process ends. `launch` has
  // already registered its own server, and a second registration has no effect.
  const release = killOnExit(server.pid, 'SIGINT');
  // The file `owner` marks the folder as used by this process. `findRunning` in another process reads the file.
  writeFileSync(path.join(cluster.folder, 'owner'), String(process.pid));

  const url = (database: string) => connectionString(cluster, server.port, database);
  const shutDown = async () => {
    // SIGINT requests a fast shutdown. SIGQUIT requests an immediate shutdown.
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
    adopted: running !== undefined,
    dataFolder: cluster.data,
    async createDatabase(name) {
      try {
        await queryOnce(url('postgres'), `CREATE DATABASE ${escapeIdentifier(name)}`);
      } catch (error) {
        // 42P04: the database exists. 23505: another connection has just created it.
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
  if (isRoot) allowTraversalInTemporaryFolder(given);
  const folder = isRoot && !othersMayPass(given) ? substituteFolder(given) : given;
  const data = path.join(folder, 'data');
  const passwordFile = path.join(folder, 'password');
  if (!existsSync(passwordFile)) {
    if (existsSync(data)) throw new Error(`The password file in ${folder} is missing. Remove the folder.`);
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

/**
 * Returns the account that runs PostgreSQL if this process runs as root. PostgreSQL itself does not run as root. The account is
 * the owner of the cluster, or `nobody` (65534) if the cluster is new or root owns it.
 */
function serviceUser(data: string): ServiceUser {
  const owner = existsSync(data) ? statSync(data) : undefined;
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : { uid: 65534, gid: 65534 };
}

/**
 * Lets all accounts traverse `folder` and its parents below the temporary folder (adds mode 0o011). The cluster of a test can
 * then stay in the folder of the test, and is removed with that folder.
 */
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

/**
 * Creates a folder in the temporary folder and returns its path. The cluster uses the new folder, because the account of
 * PostgreSQL cannot access the folder `wanted`. The name of the new folder contains a hash of the path `wanted`.
 */
function substituteFolder(wanted: string): string {
  const name = createHash('sha256').update(wanted).digest('hex').slice(0, 16);
  const folder = path.join(realpathSync(os.tmpdir()), `embedded-postgres-${name}`);
  makePrivateFolder(folder);
  return folder;
}

/**
 * Returns the server that an earlier process left running with this cluster, if any. Waits for a server that is starting
 * up or shutting down.
 */
async function findRunning(cluster: Cluster, signal?: AbortSignal): Promise<RunningServer | undefined> {
  let found: RunningServer | undefined;
  await waitUntil(
    async () => {
      const server = readPidFile(cluster);
      if (!server || !isAlive(server.pid)) return true;
      if (isAnotherProgram(cluster, server.pid)) {
        // Removes postmaster.pid. Otherwise, PostgreSQL would mistake the other program for a server of this cluster and would
        // not start.
        rmSync(pidFile(cluster), { force: true });
        return true;
      }
      const owner = Number(readIfPresent(path.join(cluster.folder, 'owner')));
      if (owner > 0 && owner !== process.pid && isAlive(owner)) {
        throw new Error(
          `The database in ${cluster.folder} is in use by process ${owner}. Stop that process first.`,
        );
      }
      if (await servesCluster(cluster, server.port)) found = server;
      return found !== undefined;
    },
    20_000,
    signal,
  );
  return found;
}

/**
 * Returns true if the command line of the process shows that it is not a server of this cluster. After a crash, the system may
 * give the process id in postmaster.pid to another program.
 */
function isAnotherProgram(cluster: Cluster, pid: number): boolean {
  const command = commandLine(pid);
  return command !== undefined && !command.includes(cluster.data);
}

async function servesCluster(cluster: Cluster, port: number): Promise<boolean> {
  try {
    const [row] = await queryOnce(connectionString(cluster, port, 'postgres'), 'SHOW data_directory');
    return row?.['data_directory'] === cluster.data;
  } catch {
    return false; // the server is starting up or shutting down
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
      // Another process may take the port after freePort() has found it.
      const portTaken = /could not bind|Address already in use/i.test(String(error));
      if (options.port !== undefined || !portTaken || attempt === 3) throw error;
    }
  }
}

/** Creates the cluster in the subfolder `unfinished` and then moves it, so that a crash leaves no incomplete cluster. */
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
  const newData = path.join(unfinished, 'data');
  if (user.uid !== undefined && user.gid !== undefined) {
    chownSync(passwordFile, user.uid, user.gid);
    chownSync(unfinished, user.uid, user.gid);
  }
  const options = ['-U', 'postgres', '--auth=scram-sha-256', '-E', 'UTF8', '--locale=C', '--no-sync'];
  const child = spawn(binaries.initdb, ['-D', newData, `--pwfile=${passwordFile}`, ...options], {
    ...user,
    cwd: unfinished,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: startTimeoutMilliseconds,
    ...(signal ? { signal } : {}),
  });
  const release = child.pid === undefined ? () => {} : killOnExit(child.pid, 'SIGTERM');
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    output = (output + chunk).slice(-4000);
  });
  try {
    const code = await new Promise((resolve, reject) => {
      child.once('error', reject).once('close', (status, by) => resolve(status ?? by));
    });
    if (code !== 0)
      throw new Error(`Cannot create the database cluster: initdb ended with ${code}.\n${output}`);
    renameSync(newData, data);
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
  // The log is a file and not a pipe. The server may run for a moment after this process has ended, and could then not write to
  // a pipe.
  const log = openSync(cluster.log, 'w', 0o600);
  const child = spawn(
    postgres,
    ['-D', cluster.data, '-p', String(port), ...settings.flatMap((s) => ['-c', s])],
    {
      ...cluster.user,
      cwd: cluster.data,
      detached: true, // so that Ctrl-C does not end the server before its clients
      stdio: ['ignore', log, log],
    },
  );
  closeSync(log);
  const { pid } = child;
  if (pid === undefined) throw await spawnError(child);
  const release = killOnExit(pid, 'SIGINT');
  child.unref();
  try {
    const ready = await waitUntil(
      () => {
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`PostgreSQL ended during startup.\n${readIfPresent(cluster.log).slice(-4000)}`);
        }
        const server = readPidFile(cluster);
        return server?.pid === pid && server.ready;
      },
      startTimeoutMilliseconds,
      signal,
    );
    if (!ready)
      throw new Error(`PostgreSQL was not ready within 60 s.\n${readIfPresent(cluster.log).slice(-4000)}`);
  } catch (error) {
    await endProcess(pid, [{ signal: 'SIGQUIT', milliseconds: 5_000 }]);
    release();
    throw error;
  }
  return { pid, port };
}

function spawnError(child: ChildProcess): Promise<Error> {
  return new Promise((resolve) => {
    child.once('error', (cause) => resolve(new Error(`Cannot run PostgreSQL: ${cause.message}`, { cause })));
  });
}

function pidFile(cluster: Cluster): string {
  return path.join(cluster.data, 'postmaster.pid');
}

/** Reads postmaster.pid: line 1 is the process id, line 4 the port and line 8 the state. */
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
  client.on('error', () => {}); // ignored, because the query rejects if the connection breaks
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}
