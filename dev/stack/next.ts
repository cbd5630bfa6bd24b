import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import getPort, { portNumbers } from 'get-port';
import { endProcess, killOnExit, waitUntil } from '../system/processes';
import { projectFolder } from './settings';

/** A running program: Next.js, a build script, or the server of the production build. */
export interface NextProcess {
  /** Resolves with the exit code, or with 1 if a signal terminated the process. */
  readonly exited: Promise<number>;
  /** Terminates the process group. Resolves when all its processes have ended. */
  stop(): Promise<void>;
}

const FIRST_PORT = 3000;

/** Path of the command-line program of Next.js. */
export const NEXT = createRequire(import.meta.url).resolve('next/dist/bin/next');

/**
 * Runs a program of the application in its own process group. The group ends when this process ends, even if this
 * process is killed.
 */
export function startProgram(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): NextProcess {
  const child = spawn(process.execPath, args, {
    cwd: projectFolder,
    env: { ...process.env, ...environment },
    // A detached process does not get the signal of Ctrl-C. The local stack can therefore stop Next.js before it stops the
    // database and the other servers that Next.js uses.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const group = child.pid === undefined ? undefined : -child.pid;
  const release = group === undefined ? () => {} : killOnExit(group, 'SIGTERM');
  return {
    exited: new Promise((resolve, reject) => {
      child.once('error', reject).once('exit', (code) => resolve(code ?? 1));
    }),
    async stop() {
      if (group !== undefined) await endProcess(group, [{ signal: 'SIGTERM', milliseconds: 10_000 }]);
      release();
    },
  };
}

/** Resolves to true when the application responds with a status below 500, or to false after two minutes. */
export function waitUntilReady(app: string, signal: AbortSignal): Promise<boolean> {
  const isReady = async () => {
    try {
      // Requests an API route, because Next.js compiles a route on its first request, and a page takes longer to compile.
      const response = await fetch(`${app}/health/alive`, {
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(60_000)]),
      });
      await response.arrayBuffer();
      return response.status < 500;
    } catch {
      return false;
    }
  };
  return waitUntil(isReady, 120_000, signal);
}

/**
 * Returns the requested port. Rejects if this port is in use. If no port is requested, returns the first free port from 3000
 * and prints this port unless it is 3000.
 */
export async function choosePort(requested: number | undefined): Promise<number> {
  const port = await getPort({ port: requested ?? portNumbers(FIRST_PORT, FIRST_PORT + 99) });
  if (requested !== undefined && port !== requested)
    throw new Error(`Port ${requested} is in use. Select another port with -p or PORT.`);
  if (requested === undefined && port !== FIRST_PORT)
    console.log(`Port ${FIRST_PORT} is in use. The application uses port ${port}.`);
  return port;
}
