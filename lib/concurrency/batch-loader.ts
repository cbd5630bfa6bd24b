import { withTimeout } from './with-timeout';

/** Maximum time that a batch waits for the previous lookup. The wait is limited because that lookup may never settle. */
const MAX_WAIT_MS = 5;
const MAX_KEYS = 100;

interface Batch<V> {
  readonly keys: Set<string>;
  readonly values: Promise<ReadonlyMap<string, V>>;
}

/** Resolves in the next iteration of the event loop. */
const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Returns a function that looks up one key. Concurrent calls share one call of `lookUp` with up to 100 keys, because a lookup
 * of many keys costs little more than a lookup of one.
 *
 * A batch collects keys until the previous lookup settles, for at most 5 ms. If no lookup is in flight, the batch collects the
 * keys of one event loop iteration. If a lookup fails, the calls for all its keys reject.
 */
export function batchLoader<V>(
  lookUp: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>,
): (key: string) => Promise<V | undefined> {
  /** The batch that accepts keys. */
  let open: Batch<V> | undefined;
  let lastLookup: Promise<unknown> | undefined;

  async function sendWhenDue(keys: ReadonlySet<string>): Promise<ReadonlyMap<string, V>> {
    await (lastLookup ? withTimeout(MAX_WAIT_MS, lastLookup).catch(() => undefined) : nextIteration());
    if (open?.keys === keys) open = undefined;
    const lookup = lookUp([...keys]);
    lastLookup = lookup;
    try {
      return await lookup;
    } finally {
      if (lastLookup === lookup) lastLookup = undefined;
    }
  }

  function openBatch(): Batch<V> {
    const keys = new Set<string>();
    return { keys, values: sendWhenDue(keys) };
  }

  return async (key) => {
    if (open === undefined || open.keys.size === MAX_KEYS) open = openBatch();
    open.keys.add(key);
    return (await open.values).get(key);
  };
}
