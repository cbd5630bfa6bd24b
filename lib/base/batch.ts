interface Call<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Returns a function that passes the items of one event loop iteration to a single call of `run`, and returns the result for its
 * item. `run` returns a result for each item, in the order of the items. If `run` rejects, each of these calls rejects.
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
