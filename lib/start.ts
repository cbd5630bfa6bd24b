import { setTimeout as pause } from 'node:timers/promises';
import { withholdConsole } from './console';
import { environment, InvalidEnvironmentError } from './env';
import { leave, standInFront } from './gate';
import { log } from './log';
import { noteLeaving, requestsDone } from './requests-under-way';

/**
 * Ends the process with one list of all problems, and says once what is valid and yet not wise. An error thrown at
 * start-up would not end it: Next.js logs that and serves on. The exit can go when `next start` fails over it.
 */
function checkEnvironment(): void {
  try {
    const { IDP_SECRET_KEY, IDP_AUTHORIZED_PARTIES } = environment();
    if (IDP_SECRET_KEY.startsWith('sk_live_') && IDP_AUTHORIZED_PARTIES === undefined) {
      log.warn('IDP_AUTHORIZED_PARTIES is not set: sessions of every subdomain are accepted');
    }
  } catch (error) {
    process.stderr.write(`${error instanceof InvalidEnvironmentError ? error.message : 'Start-up failed'}\n`);
    process.exit(1);
  }
}

/** Below what platforms grant before they kill. */
const SHUTDOWN_MS = 9_000;
/** How long clients may keep it from draining the pool. */
const LEAVE_MS = 7_000;
/** The exit code of Next.js after a SIGTERM, as if killed. */
const NEXT_EXIT_CODE = 143;

/**
 * On SIGTERM: what is under way is answered, every answer ends its connection, the pool is drained, and the exit code is
 * 0, within 9 s. Next.js by itself cuts off clients that are about to send; it can go when that does not happen any more
 * and there is a place for the pool (https://github.com/vercel/next.js/issues/54522).
 */
function leaveOnSigterm(): void {
  // The development server ends its own way, and at once.
  if (process.env.NODE_ENV === 'development') return;
  const ofNext = process.rawListeners('SIGTERM');
  process.removeAllListeners('SIGTERM');
  let isLeaving = false;
  process.on('SIGTERM', async (signal) => {
    // A process group gets it twice: where nobody listens, Node would end the process there and then.
    if (isLeaving) return;
    isLeaving = true;
    noteLeaving();
    process.once('exit', (code) => {
      if (code === NEXT_EXIT_CODE) process.exitCode = 0;
    });
    setTimeout(() => process.exit(0), SHUTDOWN_MS).unref();
    await Promise.race([leave(), pause(LEAVE_MS, undefined, { ref: false })]);
    await requestsDone();
    if (globalThis.databaseConnection) await (await import('./db')).drainDatabase();
    for (const listener of ofNext) listener.call(process, signal);
  });
}

/** Start-up, before the first request is answered. */
export function start(): void {
  checkEnvironment();
  withholdConsole();
  standInFront();
  leaveOnSigterm();
}
