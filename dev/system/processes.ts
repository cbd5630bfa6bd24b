import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { errorCode } from '#lib/base/errors';

/** Returns true if the process runs. For a negative id (a process group), returns true if any process of the group runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM'; // the process runs under another account
  }
  return process.platform !== 'linux' || !hasOnlyZombies(pid);
}

/**
 * Returns true if the process, or each process of the group, has ended. A zombie has ended but keeps its id, for example in a
 * container whose init process does not reap orphans.
 */
function hasOnlyZombies(pid: number): boolean {
  const candidates = pid > 0 ? [String(pid)] : readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return candidates.every((name) => {
    let stat: string;
    try {
      stat = readFileSync(`/proc/${name}/stat`, 'utf8');
    } catch {
      return true; // the process has ended in the meantime
    }
    // The program name is in parentheses and may contain parentheses. The fields after it are the state, the parent and the
    // process group.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' || (pid < 0 && Number(group) !== -pid);
  });
}

/** Polls `condition` until it returns true. Resolves to false if this takes longer than `milliseconds`. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  milliseconds: number,
): Promise<boolean> {
  const end = Date.now() + milliseconds;
  for (;;) {
    if (await condition()) return true;
    if (Date.now() >= end) return false;
    await pause(20);
  }
}

/**
 * Terminates a process, or a process group if the id is negative. Sends the signal, and SIGKILL if a process still runs after
 * `graceMs`. Resolves as soon as the process, or every process of the group, has ended. Rejects if a process still runs 5 s
 * after SIGKILL.
 */
export async function endProcess(
  pid: number,
  signal: NodeJS.Signals = 'SIGKILL',
  graceMs = 5_000,
): Promise<void> {
  const end = (by: NodeJS.Signals, milliseconds: number) => {
    sendSignal(pid, by);
    return waitUntil(() => !isAlive(pid), milliseconds);
  };
  if (!isAlive(pid) || (await end(signal, graceMs)) || (await end('SIGKILL', 5_000))) return;
  throw new Error(`Process ${pid} is still running after SIGKILL.`);
}

/** Waits for a line of standard input. If the input ends before, sends a signal to a process or group, and SIGKILL 8 s later. */
const WATCHDOG = `read -r line && exit
kill -s "$1" -- "$2"
for _ in 1 2 3 4 5 6 7 8; do sleep 1; kill -s 0 -- "$2" || exit; done
kill -s KILL -- "$2"`;

/**
 * Terminates another process, or a process group if the id is negative, when this process ends for any reason. Sends `signal`
 * first and SIGKILL 8 s later. The returned function cancels the termination. Call it when the other process has ended, because
 * the system may reuse its id.
 *
 * A watchdog process sends the signals. It reads from a pipe that the system closes when this process ends. Libraries for child
 * processes, such as execa, use a handler of the `exit` event, which does not run after a `kill -9`.
 */
export function killOnExit(pid: number, signal: NodeJS.Signals): () => void {
  const watchdog = spawn('sh', ['-c', WATCHDOG, 'watchdog', signal.replace('SIG', ''), String(pid)], {
    cwd: '/',
    detached: true, // survives signals to this process group, such as Ctrl-C
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const { stdin } = watchdog;
  stdin.on('error', () => {}); // the watchdog has ended
  // `unref` lets this process end while the watchdog still runs.
  watchdog.on('error', () => {}).unref();
  if ('unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
  return () => stdin.end('\n');
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}
