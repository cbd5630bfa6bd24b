import { readFileSync } from 'node:fs';

/** Returns the resident memory of a process in MiB. Needs `/proc`, as Linux has it. */
export function residentMegabytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
