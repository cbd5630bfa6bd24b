declare global {
  /** Next.js bundles the start-up apart from the routes: a variable of this module would not be the same in both. */
  var requestsUnderWay: { count: number; readonly whenIdle: (() => void)[] } | undefined;
}

globalThis.requestsUnderWay ??= { count: 0, whenIdle: [] };
const underWay = globalThis.requestsUnderWay;

/** Runs `work`, and counts it as under way until it has settled. */
export async function whileUnderWay<T>(work: () => Promise<T>): Promise<T> {
  underWay.count += 1;
  try {
    return await work();
  } finally {
    underWay.count -= 1;
    if (underWay.count === 0) for (const resolve of underWay.whenIdle.splice(0)) resolve();
  }
}

/** Resolves once this process has no request under way. */
export function requestsDone(): Promise<void> {
  return underWay.count === 0 ? Promise.resolve() : new Promise((resolve) => underWay.whenIdle.push(resolve));
}
