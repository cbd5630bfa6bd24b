/** Returns a function that runs `work` once for concurrent calls with the same key. Results are not cached. */
export function singleFlight<T, A extends unknown[]>(
  work: (...args: A) => Promise<T>,
  keyOf: (...args: A) => string = () => '',
): (...args: A) => Promise<T> {
  const inFlight = new Map<string, Promise<T>>();
  return (...args) => {
    const key = keyOf(...args);
    const joined = inFlight.get(key);
    if (joined !== undefined) return joined;
    const run = work(...args).finally(() => inFlight.delete(key));
    inFlight.set(key, run);
    return run;
  };
}
