/**
 * Calls `work` for each item, in the order of the items, with at most `concurrency` calls in flight. Rejects with the first
 * error, but does not stop the other calls.
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
