/** Does `work` for every item, so many at a time, in order of their beginning; rejects with the first failure. */
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
