import { setTimeout as pause } from 'node:timers/promises';
import type { Treatment } from '../tests/harness/parts/tcp-proxy';
import type { TestService } from '../tests/harness/service';

interface Fault {
  readonly part: 'cache' | 'database';
  readonly treatment: Treatment;
}

const FAULTS: readonly Fault[] = [
  { part: 'cache', treatment: 'refuse' },
  { part: 'database', treatment: 'refuse' },
  { part: 'cache', treatment: 'black-hole' },
  { part: 'database', treatment: 'black-hole' },
  { part: 'cache', treatment: 'half-an-answer' },
  { part: 'database', treatment: 'reset' },
];

/**
 * Maximum time for which an injected outage affects requests after its end. A dark connection fails after 3 s and a connection
 * attempt after 7 s (lib/db.ts), on a busy machine later.
 */
const AFTERMATH_MILLISECONDS = 10_000;
/** Calm before, between and after the faults, each for as long as a fault. */
const TURNS = 2 * FAULTS.length + 1;

/** Of a run whose calm turns outlast the aftermath of a fault: in a shorter one every failure would be explained. */
export const SHORTEST_SECONDS = (TURNS * AFTERMATH_MILLISECONDS) / 1000;

interface Window extends Fault {
  readonly from: number;
  to: number;
}

/** The times during which a part was failing, in the milliseconds of `performance.now()`. */
export interface FaultLog {
  /** What may have hit a request that ran from `started` to `ended`; undefined in calm times. */
  during(request: { started: number; ended: number }, part?: Fault['part']): Fault | undefined;
}

/** Lets each part fail in each way, by turns with calm; resolves when all are well again. */
export function breakThings(service: TestService, milliseconds: number): FaultLog & { done: Promise<void> } {
  const windows: Window[] = [];
  const proxies = { cache: service.kv.proxy, database: service.database.proxy };
  const turn = milliseconds / TURNS;
  const run = async () => {
    for (const fault of FAULTS) {
      await pause(turn);
      const window = { ...fault, from: performance.now(), to: Number.POSITIVE_INFINITY };
      windows.push(window);
      await proxies[fault.part].treat(fault.treatment);
      await pause(turn);
      await proxies[fault.part].treat('forward');
      window.to = performance.now();
    }
  };
  return {
    during: ({ started, ended }, part) =>
      windows.findLast(
        (window) =>
          (part === undefined || window.part === part) &&
          started < window.to + AFTERMATH_MILLISECONDS &&
          ended > window.from,
      ),
    done: run(),
  };
}
