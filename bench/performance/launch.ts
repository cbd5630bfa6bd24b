import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { freePort } from '../../dev/system/listen';
import { endProcess, killOnExit, waitUntil } from '../../dev/system/processes';
import { withoutServiceVariables } from '../../tests/harness/build';

/** A Node.js program that listens. */
export interface Server {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface LaunchOptions {
  /** Of `node`; the port is in the variable PORT. */
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

const isListening = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, 'localhost', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/** Starts a program and resolves once it accepts connections; it has answered nothing yet. Rejects with its words. */
export async function launch({ args, cwd, environment = {} }: LaunchOptions): Promise<Server> {
  const port = await freePort();
  const child = spawn(process.execPath, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...withoutServiceVariables(), ...environment, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`node ${args.join(' ')} could not be run`);
  const forget = killOnExit(pid, 'SIGTERM');
  let words = '';
  // What a server prints is taken away as a platform does it, and costs the server as much.
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      words = words.length < 4_000 ? words + chunk.toString() : words;
    });
  }
  const stop = async () => {
    await endProcess(pid, [{ signal: 'SIGTERM', milliseconds: 10_000 }]);
    forget();
  };
  const up = await waitUntil(async () => child.exitCode !== null || (await isListening(port)), 60_000);
  if (up && child.exitCode === null) return { url: `http://localhost:${port}`, pid, stop };
  await stop();
  throw new Error(`node ${args.join(' ')} did not come up:\n${words}`);
}
