/** Runs `work` for every item in order, at most `concurrency` at a time. Rejects with the first error. */
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
