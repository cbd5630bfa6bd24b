import { readFileSync } from 'node:fs';
import type { TestService } from '../tests/support/service';

if (process.platform !== 'linux') throw new Error('Linux only: what a process uses is read from /proc.');

/** Linux counts processor time in ticks of a hundredth of a second, whatever the kernel's own. */
const TICK_MILLISECONDS = 10;

/** Processor time that a process has used so far, user and system. */
export function cpuMilliseconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // After the name, which is in parentheses: the 12th and 13th fields are user and system time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MILLISECONDS;
}

/** Memory that a process holds. */
function residentMegabytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

/** The value below which a share of the values lies; 0 without values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** For processes whose memory is measured: in a heap of many gigabytes, what is not yet freed looks like a leak. */
export const boundedHeap = { NODE_OPTIONS: '--max-old-space-size=192' } as const;

const SAMPLE_MILLISECONDS = 500;

/** Memory of each process: the medians of the first and of the last quarter of a time, in megabytes. */
export type MemoryFigures = readonly { readonly first: number; readonly last: number }[];

const MAX_MEMORY_GROWTH = 1.25;

/** Whether a process held a quarter more at the end. Means something only of processes that had warmed up. */
export function memoryGrew(memory: MemoryFigures): boolean {
  return memory.some(({ first, last }) => last > MAX_MEMORY_GROWTH * first);
}

/** The memory of each process as two lines of a table. */
export function memoryLines(memory: MemoryFigures): Record<string, string> {
  return {
    'megabytes, first quarter': memory.map(({ first }) => Math.round(first)).join(', '),
    'megabytes, last quarter': memory.map(({ last }) => Math.round(last)).join(', '),
  };
}

/**
 * Samples the memory of a service's processes until the result is called, which returns the figures. It also empties
 * what the test's own parts remember of the traffic.
 */
export function watchMemory(service: TestService): () => MemoryFigures {
  const samples: number[][] = [];
  const sampling = setInterval(() => {
    samples.push(service.processes.map(({ pid }) => residentMegabytes(pid)));
    service.kv.takeCommands();
  }, SAMPLE_MILLISECONDS);
  return () => {
    clearInterval(sampling);
    const quarter = Math.ceil(samples.length / 4);
    const median = (part: readonly number[][], process: number) =>
      percentile(
        part.map((sample) => sample[process] ?? 0),
        0.5,
      );
    return service.processes.map((_, process) => ({
      first: median(samples.slice(0, quarter), process),
      last: median(samples.slice(-quarter), process),
    }));
  };
}
