/**
 * Makes concurrent calls for one key share one run of `work`, failure included; nothing outlives the run.
 *
 * `own` is true for the one call that began the run.
 */
export function singleFlight<T>(
  work: (key: string) => Promise<T>,
): (key: string) => Promise<{ readonly result: T; readonly own: boolean }> {
  const underWay = new Map<string, Promise<T>>();
  return async (key) => {
    const joined = underWay.get(key);
    if (joined !== undefined) return { result: await joined, own: false };
    const run = work(key).finally(() => underWay.delete(key));
    underWay.set(key, run);
    return { result: await run, own: true };
  };
}
