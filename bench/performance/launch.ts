import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { freePort } from '../../dev/system/listen';
import { endProcess, killOnExit, waitUntil } from '../../dev/system/processes';
import { withoutServiceVariables } from '../../tests/harness/build';

/** A running Node.js server. */
export interface Server {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface LaunchOptions {
  /** Arguments of `node`. The server must read its port from the environment variable PORT. */
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

const isListening = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, 'localhost', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/**
 * Starts a server. Resolves when the server accepts connections. Does not send a request, because cold-start.ts measures the
 * first request of a process. Rejects with the output of the server if it does not start.
 */
export async function launch({ args, cwd, environment = {} }: LaunchOptions): Promise<Server> {
  const port = await freePort();
  const child = spawn(process.execPath, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...withoutServiceVariables(), ...environment, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`Cannot run node ${args.join(' ')}.`);
  const release = killOnExit(pid, 'SIGTERM');
  let output = '';
  // Reads the output through a pipe, as hosting platforms do. The measured CPU time of the server therefore includes its writes
  // to this pipe.
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output = output.length < 4_000 ? output + chunk.toString() : output;
    });
  }
  const stop = async () => {
    await endProcess(pid, [{ signal: 'SIGTERM', milliseconds: 10_000 }]);
    release();
  };
  const up = await waitUntil(async () => child.exitCode !== null || (await isListening(port)), 60_000);
  if (up && child.exitCode === null) return { url: `http://localhost:${port}`, pid, stop };
  await stop();
  throw new Error(`node ${args.join(' ')} did not start:\n${output}`);
}
