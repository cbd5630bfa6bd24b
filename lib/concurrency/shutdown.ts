import { processState } from '../process-state';

const state = processState('shutdown', () => ({
  requestsInFlight: 0,
  isShuttingDown: false,
  idleCallbacks: new Set<() => void>(),
  hooks: new Set<() => Promise<void>>(),
}));

/** Runs `work` and counts it as a request in flight until it settles. */
export async function trackInFlight<T>(work: () => Promise<T>): Promise<T> {
  state.requestsInFlight += 1;
  try {
    return await work();
  } finally {
    state.requestsInFlight -= 1;
    if (state.requestsInFlight === 0) for (const callback of state.idleCallbacks) callback();
  }
}

/** Resolves when no request is in flight in this process. */
export function whenIdle(): Promise<void> {
  return state.requestsInFlight === 0
    ? Promise.resolve()
    : new Promise((resolve) => state.idleCallbacks.add(resolve));
}

/** Marks the process as shutting down. Returns false if it already was. */
export function beginShutdown(): boolean {
  const isFirst = !state.isShuttingDown;
  state.isShuttingDown = true;
  return isFirst;
}

/** Returns true if the process still responds to requests, but should not get new ones. */
export const isShuttingDown = (): boolean => state.isShuttingDown;

/** Registers a function that closes a dependency. It runs when no request is in flight. */
export function onShutdown(hook: () => Promise<void>): void {
  state.hooks.add(hook);
}

/** Runs the registered functions. A failure of one does not affect the others. */
export async function closeDependencies(): Promise<void> {
  await Promise.allSettled([...state.hooks].map((hook) => hook()));
}
