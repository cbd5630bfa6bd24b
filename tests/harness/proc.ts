import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** True if the system has `/proc`, as Linux does. */
export const hasProc = existsSync('/proc/self/status');

/** Suffix of the title of a test that needs `/proc`. */
export const notRun = hasProc ? '' : ' (NOT RUN: no /proc on this machine)';

/** Returns the resident memory of a process in MiB. */
export function residentMegabytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** Returns the number of open file descriptors of a process. */
export const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
