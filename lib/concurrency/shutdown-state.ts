import { processState } from '../process-state';

// On SIGTERM, server.ts calls beginShutdown(), drains the connections, and calls closeDependencies().
const state = processState('shutdown', () => ({
  isShuttingDown: false,
  hooks: new Set<() => Promise<void>>(),
}));

/** Marks the process as shutting down. Returns false if a shutdown is already in progress. */
export function beginShutdown(): boolean {
  const isFirst = !state.isShuttingDown;
  state.isShuttingDown = true;
  return isFirst;
}

/** Returns true during a shutdown. The process still responds to requests, but should not get new ones. */
export const isShuttingDown = (): boolean => state.isShuttingDown;

/** Registers a function that closes a dependency. It runs at the end of a shutdown. */
export function onShutdown(hook: () => Promise<void>): void {
  state.hooks.add(hook);
}

/** Runs the registered functions. A function that fails does not affect the other functions. */
export async function closeDependencies(): Promise<void> {
  await Promise.allSettled([...state.hooks].map((hook) => hook()));
}
