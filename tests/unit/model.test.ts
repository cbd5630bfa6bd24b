import { expect, test } from 'vitest';
import { SMALL } from '../../tools/model/bounds';
import { explore } from '../../tools/model/explore';
import { linkModel } from '../../tools/model/link';
import { WEAKNESSES } from '../../tools/model/state';

// A model is a state machine: an initial state and the possible steps from each state. explore() searches for a state that
// breaks a guarantee. linkModel() describes how the service links users to internal ids.
test('explore() visits each state once and finds a shortest trace to a broken guarantee', () => {
  const counter = (limit: number) => ({
    initial: 0,
    steps: (state: number) => [
      { label: 'add 1', next: Math.min(state + 1, 10) },
      { label: 'add 3', next: Math.min(state + 3, 10) },
    ],
    brokenGuarantee: (state: number) => (state === limit ? 'below the limit' : undefined),
  });
  expect(explore(counter(7)).broken).toEqual({
    guarantee: 'below the limit',
    trace: ['add 1', 'add 3', 'add 3'],
  });
  expect(explore(counter(11))).toMatchObject({ states: 11 });
});

test.each(SMALL)(
  'The model of how users are linked keeps every guarantee within small bounds: %j',
  (bounds) => {
    const { states, broken } = explore(linkModel(bounds));
    expect(broken).toBeUndefined();
    expect(states).toBeGreaterThan(1_000);
  },
);

test.each(WEAKNESSES)('explore() finds the broken guarantee of a weakened model: %s', (weakness) => {
  const isFound = SMALL.some((bounds) => explore(linkModel(bounds, weakness)).broken !== undefined);
  expect(isFound).toBe(true);
});
