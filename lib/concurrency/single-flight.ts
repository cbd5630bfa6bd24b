/**
 * Returns a function that runs `work` once for concurrent calls with the same key. All these calls get the same result or
 * error. `work` gets the arguments of the first call. The resolved value contains the result, and `isLeader`, which is true
 * only for the first call. Results are not cached.
 */
export function singleFlight<T, A extends unknown[]>(
  work: (key: string, ...rest: A) => Promise<T>,
): (key: string, ...rest: A) => Promise<{ readonly result: T; readonly isLeader: boolean }> {
  const inFlight = new Map<string, Promise<T>>();
  return async (key, ...rest) => {
    const joined = inFlight.get(key);
    if (joined !== undefined) return { result: await joined, isLeader: false };
    const run = work(key, ...rest).finally(() => inFlight.delete(key));
    inFlight.set(key, run);
    return { result: await run, isLeader: true };
  };
}
