import { setTimeout as pause } from 'node:timers/promises';
import type { Treatment } from '../../tests/harness/dependencies/tcp-proxy';
import type { TestService } from '../../tests/harness/service';

interface Fault {
  readonly dependency: 'cache' | 'database';
  readonly treatment: Treatment;
}

const FAULTS: readonly Fault[] = [
  { dependency: 'cache', treatment: 'refuse' },
  { dependency: 'database', treatment: 'refuse' },
  { dependency: 'cache', treatment: 'black-hole' },
  { dependency: 'database', treatment: 'black-hole' },
  { dependency: 'cache', treatment: 'truncate' },
  { dependency: 'database', treatment: 'reset' },
];

/**
 * Time after an injected failure during which requests may still fail, because the service detects a dead connection
 * after 3 s or more.
 */
const RECOVERY_MILLISECONDS = 10_000;
/** Number of periods. Calm periods and injected failures alternate and have the same length. */
const PERIODS = 2 * FAULTS.length + 1;

/** Minimum length of a run. In a shorter run, the recovery from a failure would take up the calm period after it. */
export const SHORTEST_SECONDS = (PERIODS * RECOVERY_MILLISECONDS) / 1000;

interface Window extends Fault {
  readonly from: number;
  to: number;
}

/** The injected failures. All times are values of `performance.now()`. */
export interface FaultLog {
  /** Returns the injected failure that may have affected a request, or undefined if there was none. */
  during(request: { started: number; ended: number }, dependency?: Fault['dependency']): Fault | undefined;
}

/** Injects each failure in turn, with calm periods between them. `done` resolves when all dependencies work again. */
export function injectFaults(service: TestService, milliseconds: number): FaultLog & { done: Promise<void> } {
  const windows: Window[] = [];
  const proxies = { cache: service.kv.proxy, database: service.database.proxy };
  const period = milliseconds / PERIODS;
  const run = async () => {
    for (const fault of FAULTS) {
      await pause(period);
      const window = { ...fault, from: performance.now(), to: Number.POSITIVE_INFINITY };
      windows.push(window);
      await proxies[fault.dependency].treat(fault.treatment);
      await pause(period);
      await proxies[fault.dependency].treat('forward');
      window.to = performance.now();
    }
  };
  return {
    during: ({ started, ended }, dependency) =>
      windows.findLast(
        (window) =>
          (dependency === undefined || window.dependency === dependency) &&
          started < window.to + RECOVERY_MILLISECONDS &&
          ended > window.from,
      ),
    done: run(),
  };
}
