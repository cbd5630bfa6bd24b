declare global {
  /** Next.js bundles the start-up apart from the routes: a variable of this module would not be the same in both. */
  var requestsUnderWay: { count: number; isLeaving: boolean; readonly whenIdle: (() => void)[] } | undefined;
}

globalThis.requestsUnderWay ??= { count: 0, isLeaving: false, whenIdle: [] };
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

/** From now on, `isLeaving` says so. */
export function noteLeaving(): void {
  underWay.isLeaving = true;
}

/** True once this process has been told to end: what it is asked is answered, and no more should be sent. */
export const isLeaving = (): boolean => underWay.isLeaving;
