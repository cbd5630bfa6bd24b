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
 * Time after an injected failure during which requests may still fail, because the service needs 3 s or more to detect a dead
 * connection.
 */
const RECOVERY_MILLISECONDS = 10_000;
/** Number of periods of equal length in a run. Each period with a failure is between two calm periods. */
const PERIODS = 2 * FAULTS.length + 1;

/** Minimum length of a run. In a shorter run, a calm period would end before the service has recovered. */
export const SHORTEST_SECONDS = (PERIODS * RECOVERY_MILLISECONDS) / 1000;

/** Period of an injected failure, as values of `performance.now()`. */
interface Window extends Fault {
  readonly from: number;
  to: number;
}

/** The injected failures so far. */
export interface FaultLog {
  /**
   * Returns the last injected failure that may have affected a request, or undefined if there is none. `started` and `ended`
   * are values of `performance.now()`. If `dependency` is given, only failures of this dependency count.
   */
  during(request: { started: number; ended: number }, dependency?: Fault['dependency']): Fault | undefined;
}

/** Injects the failures one after the other. `done` resolves at the end of the last failure, before the last calm period. */
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
