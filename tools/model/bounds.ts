import type { Bounds } from './state';

const NONE: Bounds = {
  ...{ users: 1, processes: 2, guards: 0, registers: 0, deliveries: 0, forgets: 0, relinks: 0 },
  ...{ crashes: 0, outages: 0, lostResponses: 0, timeouts: 0 },
};

/**
 * Small bounds (maximum numbers of calls and failures). Each of the `WEAKNESSES` (state.ts) makes the model break a guarantee
 * within at least one of these bounds.
 */
export const SMALL: readonly Bounds[] = [
  { ...NONE, guards: 1, registers: 2, deliveries: 1, lostResponses: 1 },
  { ...NONE, guards: 2, forgets: 1, timeouts: 1 },
  { ...NONE, guards: 1, registers: 2, relinks: 1, forgets: 1 },
];

/** Bounds of `npm run model`. Together they contain each kind of step. One entry with all kinds would have too many states. */
export const LARGE: readonly Bounds[] = [
  { ...NONE, guards: 2, registers: 1, forgets: 1, crashes: 1, outages: 1 },
  { ...NONE, guards: 2, forgets: 2, crashes: 2, outages: 1, timeouts: 1 },
  { ...NONE, guards: 3, forgets: 1, crashes: 1, outages: 1, timeouts: 1 },
  { ...NONE, processes: 3, guards: 1, registers: 2, deliveries: 2, crashes: 1, lostResponses: 1 },
  { ...NONE, guards: 2, registers: 1, relinks: 2, crashes: 1, outages: 1 },
  { ...NONE, guards: 2, deliveries: 1, forgets: 1, relinks: 1, crashes: 1 },
  { ...NONE, users: 2, guards: 2, deliveries: 1, forgets: 1, crashes: 1 },
];
