import { expect, test } from 'vitest';
import { explore } from './explore';
import { linkModel, NONE, WEAKNESSES } from './link-model';

/** Bounds of the exploration. Each of the `WEAKNESSES` makes the model break a guarantee within at least one of them. */
const BOUNDS = [
  { ...NONE, guard: 1, register: 2, webhook: 1, crash: 1, lostResponse: 1 },
  { ...NONE, guard: 2, forget: 1, crash: 1, outage: 1, timeout: 1 },
  { ...NONE, guard: 1, register: 2, relink: 1, forget: 1 },
];
/** Larger bounds, which together contain each kind of step. One entry with all kinds would have too many states. */
const LARGER = [
  { ...NONE, guard: 1, register: 1, forget: 1, crash: 1, outage: 1, lostResponse: 1 },
  { ...NONE, guard: 2, forget: 2, crash: 2, outage: 1, timeout: 1 },
  { ...NONE, guard: 2, register: 1, relink: 2, crash: 1, outage: 1 },
  { ...NONE, guard: 2, webhook: 1, forget: 1, relink: 1, crash: 1 },
];

test.each([...BOUNDS, ...LARGER])('The model keeps every guarantee within these bounds: %j', (bounds) => {
  const { states, broken, trace } = explore(linkModel(bounds));
  expect({ broken, trace }).toEqual({ broken: undefined, trace: [] });
  expect(states).toBeGreaterThan(1_000);
});

test.each(WEAKNESSES)('The model breaks a guarantee with this error: %s', (weakness) => {
  const isBroken = BOUNDS.some((bounds) => explore(linkModel(bounds, weakness)).broken !== undefined);
  expect(isBroken).toBe(true);
});
