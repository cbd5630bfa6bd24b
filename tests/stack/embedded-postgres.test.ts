import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startPostgres } from '../../dev/postgres/server';
import { listen } from '../../dev/system/listen';
import { isAlive } from '../../dev/system/processes';
import { startProcess } from '../../dev/system/start-process';
import { query } from '../harness/dependencies/database';
import { stopAfterTest } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

// The embedded PostgreSQL is a server from an npm package. The local stack and the tests start it with startPostgres().
const root = temporaryFolder();
let folders = 0;

function newFolder(): string {
  folders += 1;
  return path.join(root, String(folders), 'postgres');
}

const start = async (folder: string, more: { port?: number } = {}) =>
  stopAfterTest(await startPostgres({ folder, durable: false, ...more }));

/** Returns the process id of a running server. */
function serverProcess({ dataFolder }: { readonly dataFolder: string }): number {
  return Number(readFileSync(path.join(dataFolder, 'postmaster.pid'), 'utf8').split('\n')[0]);
}

test('The embedded PostgreSQL ignores a locale that does not exist, keeps its data across a restart, listens only on loopback and requires the password', async () => {
  vi.stubEnv('LC_ALL', 'xx_XX.UTF-8');
  onTestFinished(() => void vi.unstubAllEnvs());
  const folder = newFolder();
  const first = await start(folder);
  await first.createDatabase('kept');
  await query(first.url('kept'), 'CREATE TABLE note AS SELECT 42 AS answer');
  await first.createDatabase('kept');
  const pid = serverProcess(first);
  await Promise.all([first.stop(), first.stop()]);
  expect(isAlive(pid)).toBe(false);

  const second = await start(folder);
  const url = second.url('kept');
  const settings = `current_setting('listen_addresses') AS addresses, current_setting('TimeZone') AS zone`;
  expect(await query(url, `SELECT answer, ${settings} FROM note`)).toEqual([
    { answer: 42, addresses: '127.0.0.1', zone: 'UTC' },
  ]);
  const wrong = Object.assign(new URL(url), { password: 'postgres' }).href;
  await expect(query(wrong, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
});

test('The embedded PostgreSQL ends when the process that started it is killed, and the next start waits for its end', async () => {
  const folder = newFolder();
  const program = path.join(root, 'holder.mts');
  const module = fileURLToPath(new URL('../../dev/postgres/server.ts', import.meta.url));
  writeFileSync(
    program,
    `import { startPostgres } from ${JSON.stringify(module)};
     const server = await startPostgres({ folder: ${JSON.stringify(folder)}, durable: true });
     await server.createDatabase('left_behind');
     console.log(server.dataFolder);
     setInterval(() => {}, 60_000);`,
  );
  const holder = stopAfterTest(startProcess(process.execPath, ['--import', 'tsx', program]));
  await holder.ready(() => holder.written.stdout.endsWith('\n'));
  const pid = serverProcess({ dataFolder: holder.written.stdout.trim() });
  holder.child.kill('SIGKILL');
  const next = await start(folder);
  expect(isAlive(pid)).toBe(false);
  expect(await query(next.url('left_behind'), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

test('If the embedded PostgreSQL does not start, the error contains its log', async () => {
  const occupied = createServer();
  onTestFinished(() => void occupied.close());
  const port = await listen(occupied);
  await expect(start(newFolder(), { port })).rejects.toThrow(/could not bind IPv4 address "127.0.0.1"/);
});

test('An embedded PostgreSQL of another version does not start, and the error says what to do', async () => {
  const folder = newFolder();
  const { dataFolder, stop } = await start(folder);
  await stop();
  writeFileSync(path.join(dataFolder, 'PG_VERSION'), '16\n');
  await expect(start(folder)).rejects.toThrow(/another version of PostgreSQL. Delete the folder/);
});
