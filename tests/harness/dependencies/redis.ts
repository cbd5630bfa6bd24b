import { spawn, spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { freePort } from '../../../dev/system/listen';
import { endProcess, killOnExit, waitUntil } from '../../../dev/system/processes';

const PROGRAM = 'redis-server';

/** Returns true if Redis is installed. */
export const hasRedis = () => spawnSync(PROGRAM, ['--version']).status === 0;

/** Starts a Redis server without persistence. Rejects if redis-server is not on PATH or does not listen within 20 s. */
export async function startRedis(wantedPort?: number) {
  const port = wantedPort ?? (await freePort());
  const child = spawn(PROGRAM, ['--port', String(port), '--bind', '127.0.0.1', '--save', ''], {
    stdio: 'ignore',
  });
  const { pid } = child;
  // If the start fails, there is no pid, and `child` emits `error`. Without a listener, this event would end the process.
  child.on('error', () => {});
  if (pid === undefined) throw new Error(`There is no ${PROGRAM} on PATH`);
  const cancelKill = killOnExit(pid, 'SIGTERM');
  const stop = async () => {
    await endProcess(pid, [{ signal: 'SIGTERM', milliseconds: 5_000 }]);
    cancelKill();
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
