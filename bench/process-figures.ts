import { readdirSync, readFileSync } from 'node:fs';
import { residentMegabytes } from '../tests/harness/proc';
import type { TestService } from '../tests/harness/service';

if (process.platform !== 'linux')
  throw new Error('These figures require Linux, because they are read from /proc.');

/** Returns the ids of a process and of its descendants. */
function processTree(root: number): number[] {
  const parents = readdirSync('/proc').flatMap((name) => {
    try {
      // The process name is in parentheses. The state and the id of the parent follow the name.
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      return [{ pid: Number(name), parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) }];
    } catch {
      return []; // Not a process, or a process that has ended.
    }
  });
  const below = (pid: number): number[] => [
    pid,
    ...parents.filter(({ parent }) => parent === pid).flatMap((child) => below(child.pid)),
  ];
  return below(root);
}

/** Returns the CPU time (user and system) that the current threads of a process have used. */
export const processCpuMilliseconds = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`)
    .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'))
    // The first field is the CPU time in nanoseconds.
    .reduce((sum, schedstat) => sum + Number(schedstat.split(' ')[0]) / 1e6, 0);

/** Returns the CPU time that a process and its current descendants have used. */
export const cpuMilliseconds = (root: number): number =>
  processTree(root).reduce((sum, pid) => sum + processCpuMilliseconds(pid), 0);

/** Returns the percentile for a share, such as 0.99 for the 99th percentile. Returns 0 if there are no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/**
 * Environment variables of processes whose memory is measured. They limit the heap (in MiB), because uncollected garbage
 * in a heap of many gigabytes looks like a leak.
 */
export const limitedHeap = { NODE_OPTIONS: '--max-old-space-size=192' } as const;

/** Interval between two samples of the memory. */
const SAMPLE_MILLISECONDS = 500;

/** Median memory of each process in the first and in the last quarter of the samples, in megabytes. */
export type MemoryFigures = readonly { readonly first: number; readonly last: number }[];

const MAX_MEMORY_GROWTH = 1.25;

/** Returns true if the memory of a process grew by more than a quarter. The samples must start after a warm-up. */
export function memoryGrew(memory: MemoryFigures): boolean {
  return memory.some(({ first, last }) => last > MAX_MEMORY_GROWTH * first);
}

/** Returns two lines of a table: the memory of each process in the first and in the last quarter of the samples. */
export function memoryLines(memory: MemoryFigures): Record<string, string> {
  return {
    'megabytes in the first quarter': memory.map(({ first }) => Math.round(first)).join(', '),
    'megabytes in the last quarter': memory.map(({ last }) => Math.round(last)).join(', '),
  };
}

/**
 * Samples the memory of the service's processes. The returned function ends the sampling and returns the figures. Each sample
 * also discards the commands that the KV emulator records. Otherwise these commands would fill the memory of this process.
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
