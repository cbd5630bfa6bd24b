/** Returns a function that runs `work`, or returns the result of a run for the same key in flight. Results are not cached. */
export function singleFlight<T>(): (key: string, work: () => Promise<T>) => Promise<T> {
  const inFlight = new Map<string, Promise<T>>();
  return (key, work) => {
    const joined = inFlight.get(key);
    if (joined !== undefined) return joined;
    const run = work().finally(() => inFlight.delete(key));
    inFlight.set(key, run);
    return run;
  };
}

/** Rejects with a TimeoutError if `work` does not settle in time. Does not cancel `work`. */
export async function withTimeout<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(Object.assign(new Error('Timed out'), { name: 'TimeoutError' })),
      milliseconds,
    );
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

const MAX_ATTEMPTS = 5;

/**
 * Calls `work`, and calls it again if it lost a race against another transaction, up to five times in total. Does not pause,
 * because the next call sees what the other transaction committed, or waits in the store until that transaction ends.
 */
export async function retryLostRace<T>(
  isLostRace: (error: unknown) => boolean,
  work: () => Promise<T>,
  attempt = 1,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (attempt === MAX_ATTEMPTS || !isLostRace(error)) throw error;
    return retryLostRace(isLostRace, work, attempt + 1);
  }
}

interface Call<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Returns a function that passes the items of one event loop iteration to a single call of `run`, which returns a result for each
 * item, in their order. If `run` rejects, each of these calls does.
 */
export function batch<Item, Result>(
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
): (item: Item) => Promise<Result> {
  let waiting: Call<Item, Result>[] = [];
  async function settle(calls: readonly Call<Item, Result>[]): Promise<void> {
    try {
      const results = await run(calls.map(({ item }) => item));
      for (const [index, result] of results.entries()) calls[index]?.resolve(result);
    } catch (error) {
      for (const { reject } of calls) reject(error);
    }
  }
  return (item) =>
    new Promise((resolve, reject) => {
      if (waiting.push({ item, resolve, reject }) > 1) return;
      setImmediate(() => {
        void settle(waiting);
        waiting = [];
      });
    });
}
