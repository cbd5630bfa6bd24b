import { readdirSync, readFileSync } from 'node:fs';
import { residentMegabytes } from '../tests/harness/proc';
import type { TestService } from '../tests/harness/service';

if (process.platform !== 'linux') throw new Error('Linux only: what a process uses is read from /proc.');

/** A process and all that it started, directly or not. */
function processTree(root: number): number[] {
  const parents = readdirSync('/proc').flatMap((name) => {
    try {
      // After the name, which is in parentheses: state, parent.
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      return [{ pid: Number(name), parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) }];
    } catch {
      return []; // no process, or gone meanwhile
    }
  });
  const below = (pid: number): number[] => [
    pid,
    ...parents.filter(({ parent }) => parent === pid).flatMap((child) => below(child.pid)),
  ];
  return below(root);
}

/** Processor time that the threads of a process have used so far, user and system. */
export const processCpuMilliseconds = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`)
    .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'))
    // The first field: nanoseconds on a processor.
    .reduce((sum, schedstat) => sum + Number(schedstat.split(' ')[0]) / 1e6, 0);

/** Processor time that a process and all its descendants have used so far. */
export const cpuMilliseconds = (root: number): number =>
  processTree(root).reduce((sum, pid) => sum + processCpuMilliseconds(pid), 0);

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
