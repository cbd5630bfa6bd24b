import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { startPostgres } from '../../dev/postgres/server';
import { listen } from '../../dev/system/listen';
import { isAlive } from '../../dev/system/processes';
import { stopAfterTest } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

// The embedded PostgreSQL is a server from an npm package. The local stack and the tests start it with startPostgres().
const root = temporaryFolder();
let folders = 0;
/** Timeout of a connection. It is long enough for a busy machine, and only a failing test reaches it. */
const TIMEOUT_MS = 60_000;

function newFolder(): string {
  folders += 1;
  return path.join(root, String(folders), 'postgres');
}

const start = async (folder: string, more: { port?: number; signal?: AbortSignal } = {}) =>
  stopAfterTest(await startPostgres({ folder, durable: false, ...more }));

async function query(url: string, statement: string) {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: TIMEOUT_MS });
  try {
    await client.connect();
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

/** Returns the process id of a running server. */
function serverProcess(server: { readonly dataFolder: string }): number {
  return Number(readFileSync(path.join(server.dataFolder, 'postmaster.pid'), 'utf8').split('\n')[0]);
}

/** Starts a Node.js process that runs `before`, starts a PostgreSQL server in the folder and then waits to be killed. */
async function startInAnotherProcess(folder: string, before = '') {
  const program = path.join(root, `holder-${folders}.mts`);
  const module = fileURLToPath(new URL('../../dev/postgres/server.ts', import.meta.url));
  writeFileSync(
    program,
    `import { startPostgres } from ${JSON.stringify(module)};
     ${before}
     const server = await startPostgres({ folder: ${JSON.stringify(folder)}, durable: true });
     await server.createDatabase('left_behind');
     console.log(server.dataFolder);
     setInterval(() => {}, 60_000);`,
  );
  const child = spawn(process.execPath, ['--import', 'tsx', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  const pid = serverProcess({ dataFolder: String(line).trim() });
  return { child, pid };
}

async function kill(child: ChildProcess) {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

test('The embedded PostgreSQL keeps its data across a restart', async () => {
  const folder = newFolder();
  const first = await start(folder);
  await first.createDatabase('kept');
  await query(first.url('kept'), 'CREATE TABLE note AS SELECT 42 AS answer');
  await first.stop();

  const second = await start(folder);
  expect(second.adopted).toBe(false);
  expect(await query(second.url('kept'), 'SELECT answer FROM note')).toEqual([{ answer: 42 }]);
});

test('Two concurrent calls of stop() terminate the embedded PostgreSQL', async () => {
  const server = await start(newFolder());
  const pid = serverProcess(server);
  expect(isAlive(pid)).toBe(true);
  await Promise.all([server.stop(), server.stop()]);
  expect(isAlive(pid)).toBe(false);
});

test('The embedded PostgreSQL listens only on loopback, requires the password, uses UTC and allows 200 connections', async () => {
  const server = await start(newFolder());
  const url = server.url('postgres');
  const [settings] = await query(
    url,
    `SELECT current_setting('listen_addresses') AS addresses, current_setting('unix_socket_directories') AS sockets,
            current_setting('TimeZone') AS zone, current_setting('max_connections') AS connections`,
  );
  expect(settings).toEqual({ addresses: '127.0.0.1', sockets: '', zone: 'UTC', connections: '200' });
  const wrong = new URL(url);
  wrong.password = 'postgres';
  await expect(query(wrong.href, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
});

test('createDatabase() does not change a database that exists', async () => {
  const server = await start(newFolder());
  await server.createDatabase('kept');
  await query(server.url('kept'), 'CREATE TABLE note AS SELECT 1 AS version');
  await server.createDatabase('kept');
  expect(await query(server.url('kept'), 'SELECT version FROM note')).toEqual([{ version: 1 }]);
});

test('The embedded PostgreSQL ends when the process that started the server is killed, and the next start finds the data', async () => {
  const folder = newFolder();
  const { child, pid } = await startInAnotherProcess(folder);
  await kill(child);
  await expect.poll(() => !isAlive(pid)).toBe(true);
  const next = await start(folder);
  expect(next.adopted).toBe(false);
  expect(await query(next.url('left_behind'), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

test('startPostgres() uses a server that an earlier process left running, and stop() terminates this server', async () => {
  const folder = newFolder();
  // A watchdog process normally stops the server when the process that started the server ends. With this `execPath`, the
  // watchdog cannot start, so the server keeps running.
  const { child, pid } = await startInAnotherProcess(folder, `process.execPath = '/nowhere';`);
  await kill(child);
  expect(isAlive(pid)).toBe(true);
  const next = await start(folder);
  expect(next.adopted).toBe(true);
  expect(await query(next.url('left_behind'), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  await next.stop();
  expect(isAlive(pid)).toBe(false);
});

test('The embedded PostgreSQL starts even if postmaster.pid contains the process id of an unrelated program', async () => {
  const folder = newFolder();
  const first = await start(folder);
  await first.createDatabase('kept');
  await first.stop();
  // PostgreSQL does not start if postmaster.pid contains the id of a running process that belongs to the operating-system user
  // of the server, because it assumes that this process is a server. startPostgres() must therefore remove a postmaster.pid
  // that contains the id of another program. This test starts such a program.
  const { uid, gid } = statSync(first.dataFolder);
  const other = spawn('sleep', ['600'], {
    cwd: '/',
    stdio: 'ignore',
    ...(process.getuid?.() === 0 ? { uid, gid } : {}),
  });
  onTestFinished(() => void other.kill('SIGKILL'));
  await once(other, 'spawn');
  const stale = [other.pid, first.dataFolder, 0, 1, '', '127.0.0.1', 0, 'ready', ''].join('\n');
  writeFileSync(path.join(first.dataFolder, 'postmaster.pid'), stale);

  const second = await start(folder);
  expect(second.adopted).toBe(false);
  expect(await query(second.url('kept'), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  expect(isAlive(other.pid ?? 0)).toBe(true);
});

test('startPostgres() rejects if another process uses the folder, and does not stop the server of that process', async () => {
  const folder = newFolder();
  const { child, pid } = await startInAnotherProcess(folder);
  await expect(start(folder)).rejects.toThrow(`in use by process ${child.pid}`);
  expect(isAlive(pid)).toBe(true);
  await kill(child);
});

test('startPostgres() rejects with the log of the server if the server does not start', async () => {
  const occupied = createServer();
  onTestFinished(() => void occupied.close());
  const port = await listen(occupied);
  await expect(start(newFolder(), { port })).rejects.toThrow(/could not bind IPv4 address "127.0.0.1"/);
});

test('An aborted start of the embedded PostgreSQL leaves no server process, and a later start can use the folder', async () => {
  const folder = newFolder();
  const first = await start(folder);
  const { dataFolder } = first;
  await first.stop();
  // A standby with hot_standby=off never reports that it is ready, so the start stays pending.
  appendFileSync(path.join(dataFolder, 'postgresql.auto.conf'), 'hot_standby = off\n');
  const standby = path.join(dataFolder, 'standby.signal');
  writeFileSync(standby, '');
  const abort = new AbortController();
  const starting = start(folder, { signal: abort.signal });
  const failed = expect(starting).rejects.toThrow('aborted by the test');
  // Waits until the server process exists.
  let pid = 0;
  await expect
    .poll(() => {
      try {
        pid = serverProcess({ dataFolder });
      } catch {
        // postmaster.pid does not exist yet or is incomplete.
      }
      return pid;
    })
    .toBeGreaterThan(0);
  abort.abort(new Error('aborted by the test'));
  await failed;
  expect(isAlive(pid)).toBe(false);
  rmSync(standby);
  await start(folder);
});
