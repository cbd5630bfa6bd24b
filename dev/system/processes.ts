import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { errorCode } from './errors';

/** True while the process, or for a negative id any process of that group, runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
  return process.platform !== 'linux' || !hasOnlyZombies(pid);
}

/** In a container whose first process collects no orphans, a dead process keeps its id for ever. */
function hasOnlyZombies(pid: number): boolean {
  const candidates = pid > 0 ? [String(pid)] : readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return candidates.every((name) => {
    let stat: string;
    try {
      stat = readFileSync(`/proc/${name}/stat`, 'utf8');
    } catch {
      return true; // gone meanwhile
    }
    // After the name, which is in parentheses and may itself hold some: state, parent, process group.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' || (pid < 0 && Number(group) !== -pid);
  });
}

/** The program that a process runs and its arguments; undefined if the system does not tell. */
export function commandLine(pid: number): string | undefined {
  if (process.platform !== 'linux') {
    const { status, stdout } = spawnSync('ps', ['-ww', '-o', 'args=', '-p', String(pid)], {
      encoding: 'utf8',
      timeout: 10_000,
    });
    return status === 0 ? stdout : undefined;
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return undefined;
  }
}

/**
 * Resolves to true once `condition` holds, or to false when it did not within `milliseconds`.
 * Rejects with what `condition` throws, and with the signal's reason when that is aborted.
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  milliseconds: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const end = Date.now() + milliseconds;
  for (;;) {
    signal?.throwIfAborted();
    if (await condition()) return true;
    if (Date.now() >= end) return false;
    await pause(20);
  }
}

/**
 * Ends a process, or for a negative id a process group: when it resolves, nothing of it runs any more.
 * Each signal in turn is given its time; SIGKILL follows the last one.
 */
export async function endProcess(
  pid: number,
  steps: readonly { readonly signal: NodeJS.Signals; readonly milliseconds: number }[],
): Promise<void> {
  for (const { signal, milliseconds } of [...steps, { signal: 'SIGKILL' as const, milliseconds: 5_000 }]) {
    if (!isAlive(pid)) return;
    sendSignal(pid, signal);
    if (await waitUntil(() => !isAlive(pid), milliseconds)) return;
  }
  throw new Error(`Process ${pid} is still there after SIGKILL.`);
}

/**
 * Has a process (negative: a group) ended with `signal`, later SIGKILL, once this process is gone, however it
 * died. Call the result when the other has ended by itself, so that a reused id is left alone.
 *
 * A process of its own does it: it holds the other end of a pipe, which the system closes whatever happens here.
 */
export function endWithThisProcess(pid: number, signal: NodeJS.Signals): () => void {
  watchdog ??= startWatchdog();
  const { stdin } = watchdog;
  stdin.write(`+ ${pid} ${signal}\n`);
  return () => {
    stdin.write(`- ${pid}\n`);
  };
}

let watchdog: ReturnType<typeof startWatchdog> | undefined;

function startWatchdog() {
  const program = fileURLToPath(new URL('./watchdog.mjs', import.meta.url));
  const child = spawn(process.execPath, [program], {
    detached: true, // outlives Ctrl-C and whatever else reaches this process group
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const forget = () => {
    watchdog = undefined;
  };
  child.on('error', forget).on('exit', forget).unref();
  child.stdin.on('error', forget);
  if ('unref' in child.stdin && typeof child.stdin.unref === 'function') child.stdin.unref();
  return child;
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}
