/**
 * Returns a function that runs `work`, unless a run for the same key is in flight. Then it returns the result of that run.
 * Results are not cached.
 */
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
