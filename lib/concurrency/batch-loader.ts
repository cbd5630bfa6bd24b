interface Waiting<V> {
  readonly resolve: (value: V | undefined) => void;
  readonly reject: (fault: unknown) => void;
}

/** So long a look-up waits at most for others to go with it: one that is under way may never end. */
const MAX_WAIT_MS = 5;
const MAX_KEYS = 100;

/**
 * Makes look-ups that come while another is under way go together, as one: under load, many cost little more than one.
 * A look-up that comes alone goes at once. A fault is that of all that went together.
 */
export function batchLoader<V>(
  lookUp: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>,
): (key: string) => Promise<V | undefined> {
  let waiting = new Map<string, Waiting<V>[]>();
  let underWay = 0;
  let timer: NodeJS.Timeout | undefined;

  const go = async () => {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.size === 0) return;
    const batch = waiting;
    waiting = new Map();
    underWay += 1;
    try {
      const found = await lookUp([...batch.keys()]);
      for (const [key, callers] of batch) for (const { resolve } of callers) resolve(found.get(key));
    } catch (fault) {
      for (const { reject } of [...batch.values()].flat()) reject(fault);
    }
    underWay -= 1;
    void go();
  };

  return (key) =>
    new Promise((resolve, reject) => {
      waiting.set(key, [...(waiting.get(key) ?? []), { resolve, reject }]);
      if (waiting.size >= MAX_KEYS) void go();
      else if (waiting.size === 1) {
        if (underWay === 0) setImmediate(() => void go());
        else timer = setTimeout(() => void go(), MAX_WAIT_MS);
      }
    });
}
