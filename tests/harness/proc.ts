import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Whether this machine tells what a process uses: Linux does. */
export const hasProc = existsSync('/proc/self/status');

/** Behind the title of a test that needs it. */
export const notRun = hasProc ? '' : ' (NOT RUN: no /proc on this machine)';

/** Memory of a process. */
export function residentMegabytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** How many files and connections a process has open. */
export const openFiles = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
