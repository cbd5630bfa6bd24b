/** What a breaker stands in front of, and when it gives that up. */
export interface BreakerOptions {
  /** So many faults in a row open it. Faults of calls that were under way together count once. */
  readonly failureThreshold: number;
  /** How long it stays open before it asks whether the part is back. */
  readonly resetTimeoutMs: number;
  /** Asks the part; resolves if it is back. */
  readonly probe: () => Promise<unknown>;
  /** Milliseconds since any fixed time. */
  readonly now: () => number;
  /** Called once an outage, with the fault that opened it. */
  readonly onOpen: (fault: unknown) => void;
  readonly onClose: () => void;
}

/** Runs a call, or rejects at once while the part is given up. */
export type Breaker = <T>(call: () => Promise<T>) => Promise<T>;

/**
 * Keeps calls from a part that has been failing: each would only wait for its time-out. While it is open, a probe in the
 * background asks for the part, one at a time and only while there are calls; no call waits for it.
 *
 * A busy machine times out a whole burst of calls to a healthy part: that is one fault, not many.
 */
export function circuitBreaker(options: BreakerOptions): Breaker {
  const { failureThreshold, resetTimeoutMs, probe, now, onOpen, onClose } = options;
  let faultsInARow = 0;
  let lastFaultAt = Number.NEGATIVE_INFINITY;
  /** Undefined: closed. */
  let openSince: number | undefined;
  let probing = false;

  const noteFault = (startedAt: number, fault: unknown) => {
    if (openSince !== undefined || startedAt < lastFaultAt) return;
    lastFaultAt = now();
    faultsInARow += 1;
    if (faultsInARow < failureThreshold) return;
    openSince = lastFaultAt;
    onOpen(fault);
  };

  const ask = async () => {
    probing = true;
    try {
      await probe();
      openSince = undefined;
      faultsInARow = 0;
      onClose();
    } catch {
      openSince = now();
    }
    probing = false;
  };

  return async (call) => {
    const startedAt = now();
    if (openSince !== undefined) {
      if (!probing && startedAt - openSince >= resetTimeoutMs) void ask();
      throw new Error('Not called: it has been failing');
    }
    try {
      const result = await call();
      faultsInARow = 0;
      return result;
    } catch (fault) {
      noteFault(startedAt, fault);
      throw fault;
    }
  };
}
