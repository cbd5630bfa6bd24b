/**
 * Calls `work` for each item, in the order of the items. At most `concurrency` workers run at the same time, each with one call
 * in flight. Rejects with the first error. The worker of the failed call ends, but the other workers continue with the remaining
 * items.
 */
export async function inParallel<T>(
  concurrency: number,
  items: readonly T[],
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) await work(item, index);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}
