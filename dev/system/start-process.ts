import { type SpawnOptions, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { endProcess, isAlive, killOnExit, waitUntil } from './processes';

export interface ProcessOptions extends Pick<SpawnOptions, 'cwd' | 'env' | 'uid' | 'gid'> {
  /** Destination of standard output and standard error: `written` (the default), the output of this process, or a file. */
  readonly output?: 'capture' | 'inherit' | { readonly file: string };
  /** True: the process is the leader of a new process group, which does not get the Ctrl-C of the terminal. */
  readonly group?: boolean;
  /** Signal that requests the end of the process. Default: SIGTERM. */
  readonly signal?: NodeJS.Signals;
  /** Time between this signal and SIGKILL. Default: 10 s. */
  readonly graceMs?: number;
}

export type StartedProcess = ReturnType<typeof startProcess>;

/** Starts a program without standard input. The process, or its group, ends when this process ends, even if it is killed. */
export function startProcess(
  program: string,
  args: readonly string[],
  {
    output = 'capture',
    group = false,
    signal = 'SIGTERM',
    graceMs = 10_000,
    ...options
  }: ProcessOptions = {},
) {
  const file = typeof output === 'object' ? openSync(output.file, 'w', 0o600) : undefined;
  const destination = file ?? (output === 'inherit' ? 'inherit' : 'pipe');
  const child = spawn(program, args, {
    ...options,
    detached: group,
    stdio: ['ignore', destination, destination],
  });
  if (file !== undefined) closeSync(file);
  child.on('error', () => {}); // a program that cannot be run has no process id
  if (child.pid === undefined) throw new Error(`Cannot run ${program}.`);
  const { pid } = child;
  const id = group ? -pid : pid;
  const written = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.setEncoding('utf8').on('data', (chunk) => {
      written[stream] += chunk;
    });
  }
  const cancelKill = killOnExit(id, signal);
  let hasEnded = false;
  /** True if no process of the group runs. The system may then reuse the id. */
  let isOver = false;
  const release = () => {
    isOver = true;
    cancelKill();
  };
  const exited = new Promise<unknown>((resolve) => {
    child.once('close', (code, endedBy) => {
      hasEnded = true;
      if (!isAlive(id)) release();
      resolve(code ?? endedBy);
    });
  });
  const allOutput = () =>
    typeof output === 'object' ? readFileSync(output.file, 'utf8') : written.stdout + written.stderr;
  const stop = async () => {
    if (isOver) return;
    await endProcess(id, signal, graceMs);
    release();
  };
  return {
    child,
    pid,
    /** Captured output so far. */
    written,
    /** Returns what the process has written so far to `written` or to the file. */
    output: allOutput,
    /** Resolves with the exit code, or the signal that ended the process, once the process has closed its output. */
    exited,
    /**
     * Resolves once `condition` returns true. If the process ends before, or the time runs out, stops the process and rejects
     * with the end of its output.
     */
    async ready(condition: () => boolean | Promise<boolean>, milliseconds = 60_000) {
      const isUp = await waitUntil(async () => hasEnded || (await condition()), milliseconds);
      if (isUp && !hasEnded) return;
      const problem = hasEnded ? 'did not start' : `was not ready after ${milliseconds / 1_000} s`;
      await stop();
      throw new Error(`${program} ${args.join(' ')} ${problem}.\n${allOutput().slice(-4_000)}`);
    },
    /** Ends the process, or its group. Resolves once all its processes have ended. */
    stop,
  };
}

/** Returns true if the response to the request has a status below 500, or false if there is no response within 20 s. */
export async function responds(url: string, init?: RequestInit): Promise<boolean> {
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(20_000), ...init });
    await response.arrayBuffer();
    return response.status < 500;
  } catch {
    return false;
  }
}
