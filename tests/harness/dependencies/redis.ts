import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { freePort } from '../../../dev/system/listen';
import { endProcess, killOnExit, waitUntil } from '../../../dev/system/processes';

const PROGRAM = 'redis-server';

/** Returns true if Redis is installed. */
export function hasRedis(): boolean {
  try {
    execFileSync(PROGRAM, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export interface TestRedis {
  readonly port: number;
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a Redis server without persistence. Rejects if redis-server is not on PATH or does not listen within 20 s. */
export async function startRedis(wantedPort?: number): Promise<TestRedis> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'identity-link-tests-redis-'));
  const port = wantedPort ?? (await freePort());
  const child = spawn(
    PROGRAM,
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder],
    { stdio: 'ignore' },
  );
  const { pid } = child;
  // If the start fails, there is no pid, and `child` emits `error`. Without a listener, this event would end the process.
  child.on('error', () => {});
  if (pid === undefined) throw new Error(`There is no ${PROGRAM} on PATH`);
  const cancelKill = killOnExit(pid, 'SIGTERM');
  const stop = async () => {
    await endProcess(pid, [{ signal: 'SIGTERM', milliseconds: 5_000 }]);
    cancelKill();
    rmSync(folder, { recursive: true, force: true });
  };
  const listens = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
  if (!(await waitUntil(listens, 20_000))) {
    await stop();
    throw new Error(`${PROGRAM} does not listen`);
  }
  return { port, url: `redis://127.0.0.1:${port}`, stop };
}
