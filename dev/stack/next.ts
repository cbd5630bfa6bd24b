import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { isFree } from '../system/listen';
import { endProcess, endWithThisProcess, waitUntil } from '../system/processes';
import { projectFolder } from './settings';

/** A program of the application: Next.js, or the server of the production build. */
export interface NextProcess {
  /** Resolves with the exit code; a signal counts as 1. */
  readonly exited: Promise<number>;
  /** When it resolves nothing of it runs any more. */
  stop(): Promise<void>;
}

const firstPort = 3000;

/** The command line of Next.js. */
export const NEXT = createRequire(import.meta.url).resolve('next/dist/bin/next');

/** Runs a program of the application in a process group of its own, which is killed when this process ends. */
export function startProgram(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): NextProcess {
  const child = spawn(process.execPath, args, {
    cwd: projectFolder,
    env: { ...process.env, ...environment },
    detached: true, // Ctrl-C reaches this process, which then ends Next first and what Next uses after it
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const group = child.pid === undefined ? undefined : -child.pid;
  const release = group === undefined ? () => {} : endWithThisProcess(group, 'SIGTERM');
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

/** Resolves to true once the application answers with less than 500; false after two minutes. Rejects when aborted. */
export function answers(app: string, signal: AbortSignal): Promise<boolean> {
  const answersNow = async () => {
    try {
      // What is asked is compiled first. A page takes longer than all of the API, and may never be opened.
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
  return waitUntil(answersNow, 120_000, signal);
}

/** The wanted port, or the first free one from 3000 on, which is told if it is another. Rejects when the wanted one is taken. */
export async function choosePort(wanted: number | undefined): Promise<number> {
  if (wanted !== undefined) {
    if (await isFree(wanted)) return wanted;
    throw new Error(`Port ${wanted} is taken. Set PORT to another one.`);
  }
  for (let port = firstPort; port < firstPort + 100; port += 1) {
    if (!(await isFree(port))) continue;
    if (port !== firstPort) console.log(`Port ${firstPort} is taken: the application takes ${port}.`);
    return port;
  }
  throw new Error(`No port from ${firstPort} to ${firstPort + 99} is free. Set PORT to one that is.`);
}
