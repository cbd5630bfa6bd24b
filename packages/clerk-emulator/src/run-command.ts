import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';

const FORWARDED_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** Time between a signal and the SIGKILL for the processes that are still running. */
const GRACE_MS = 8_000;

/**
 * Runs a command with additional environment variables and forwards signals to it. Resolves with its exit code, or with 128 plus
 * the number of the signal that ended it. Ends the processes that the command started and left running. The command leads a new
 * process group, so that it gets a Ctrl-C only from this process.
 */
export async function runCommand(
  [program = '', ...args]: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<number> {
  if (process.platform === 'win32')
    throw new Error('The command clerk-emulator dev needs Linux or macOS, because it uses process groups.');
  const child = spawn(program, args, {
    env: { ...process.env, ...variables },
    stdio: 'inherit',
    detached: true,
  });
  const exited = new Promise<number>((resolve, reject) => {
    child
      .once('error', (cause) => reject(new Error(`The command ${program} did not start: ${cause.message}`)))
      .once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
  const { pid } = child;
  if (pid === undefined) return exited;
  let killTimer: NodeJS.Timeout | undefined;
  const forward = (signal: NodeJS.Signals) => {
    signalGroup(pid, signal);
    killTimer ??= setTimeout(() => signalGroup(pid, 'SIGKILL'), GRACE_MS);
  };
  for (const signal of FORWARDED_SIGNALS) process.on(signal, forward);
  const code = await exited;
  clearTimeout(killTimer);
  await endGroup(pid);
  for (const signal of FORWARDED_SIGNALS) process.off(signal, forward);
  return code;
}

/** Ends a process group with SIGTERM, and with SIGKILL if some of its processes still exist after the grace period. */
async function endGroup(pid: number): Promise<void> {
  const end = Date.now() + GRACE_MS;
  let isRunning = signalGroup(pid, 'SIGTERM');
  while (isRunning && Date.now() < end) {
    await pause(20);
    isRunning = signalGroup(pid, 0);
  }
  if (isRunning) signalGroup(pid, 'SIGKILL');
}

/** Sends a signal to a process group, or only checks the group if the signal is 0. Returns false if the group has no process. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch {
    return false;
  }
}
