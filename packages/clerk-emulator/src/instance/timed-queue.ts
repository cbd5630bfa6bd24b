import type { Clock } from './clock';

const CONCURRENT = 20;

/**
 * Runs `work` for each id that is due, at most 20 at once, while `isOpen` returns true. Never runs it twice at once for an id: an
 * id that becomes due while its work is in flight waits for the end.
 */
export function timedQueue(clock: Clock, work: (id: string) => Promise<void>, isOpen: () => boolean) {
  const timers = new Map<string, () => void>();
  const waiting = new Set<string>();
  const inFlight = new Map<string, Promise<void>>();

  const cancel = (id: string) => {
    timers.get(id)?.();
    timers.delete(id);
  };
  const start = () => {
    for (const id of waiting) {
      if (!isOpen() || inFlight.size >= CONCURRENT) return;
      if (inFlight.has(id)) continue;
      waiting.delete(id);
      const run = work(id).finally(() => {
        inFlight.delete(id);
        start();
      });
      inFlight.set(id, run);
    }
  };
  const clear = () => {
    for (const id of timers.keys()) cancel(id);
    waiting.clear();
  };
  return {
    /** Makes an id due after a delay. Replaces an earlier delay of the id. */
    schedule(id: string, delay: number) {
      cancel(id);
      const due = () => {
        timers.delete(id);
        waiting.add(id);
        start();
      };
      if (delay <= 0) due();
      else timers.set(id, clock.after(delay, due));
    },
    /** Returns true if the id is due and its work has not begun. */
    isWaiting: (id: string) => waiting.has(id),
    /** Runs the work of the ids that are due. It is called after `isOpen` has become true. */
    start,
    /** Forgets all ids. Work in flight continues. */
    clear,
    /** Forgets all ids and resolves when no work is in flight. */
    async stop() {
      clear();
      await Promise.all(inFlight.values());
    },
  };
}
