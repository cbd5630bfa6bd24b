import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { batched } from '#lib/batch';

const lengths = (keys: readonly string[]) => new Map(keys.map((key) => [key, key.length]));
const lookUp = vi.fn<(keys: readonly string[]) => Promise<ReadonlyMap<string, number>>>();
/** The look-ups that have begun, key by key. */
const begun = () => lookUp.mock.calls.map(([keys]) => keys);
/** The event loop once around. */
const turn = () => vi.advanceTimersByTimeAsync(0);

/** Makes the next look-up stay under way until it is ended. */
function holdOne() {
  let end = { resolve: () => {}, reject: (_fault: Error) => {} };
  lookUp.mockImplementationOnce(
    (keys) =>
      new Promise((resolve, reject) => {
        end = { resolve: () => resolve(lengths(keys)), reject };
      }),
  );
  return { resolve: () => end.resolve(), reject: (fault: Error) => end.reject(fault) };
}

beforeEach(() => {
  vi.useFakeTimers();
  lookUp.mockReset().mockImplementation(async (keys) => lengths(keys));
});
afterEach(() => {
  vi.useRealTimers();
});

test('a look-up that comes alone goes at once', async () => {
  const find = batched(lookUp);
  const found = find('one');
  await turn();
  expect(await found).toBe(3);
  expect(begun()).toEqual([['one']]);
});

test('those of one turn, and those that come while one is under way, go together', async () => {
  const find = batched(lookUp);
  const first = holdOne();
  const early = ['a', 'bb'].map(find);
  await turn();
  const late = ['ccc', 'dddd', 'ccc'].map(find);
  await turn();
  expect(begun()).toEqual([['a', 'bb']]);
  first.resolve();
  expect(await Promise.all([...early, ...late])).toEqual([1, 2, 3, 4, 3]);
  expect(begun()).toEqual([
    ['a', 'bb'],
    ['ccc', 'dddd'],
  ]);
});

test('none waits longer than 5 ms for one that never ends', async () => {
  const find = batched(lookUp);
  holdOne();
  void find('dark');
  await turn();
  const found = find('bb');
  await vi.advanceTimersByTimeAsync(4);
  expect(begun()).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(await found).toBe(2);
});

test('not more than 100 keys go together', async () => {
  const find = batched(lookUp);
  holdOne();
  void find('dark');
  await turn();
  const found = Array.from({ length: 250 }, (_, index) => find(`key ${index}`));
  await vi.advanceTimersByTimeAsync(5);
  await Promise.all(found);
  expect(begun().map(({ length }) => length)).toEqual([1, 100, 100, 50]);
});

test('what is not found is undefined, and a fault is that of all that went together, and of no other', async () => {
  const find = batched(lookUp);
  lookUp.mockResolvedValueOnce(new Map());
  const absent = find('absent');
  await turn();
  expect(await absent).toBeUndefined();
  lookUp.mockRejectedValueOnce(new Error('no answer'));
  const together = [find('a'), find('bb')];
  const outcomes = Promise.allSettled(together);
  await turn();
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const after = find('ccc');
  await turn();
  expect(await after).toBe(3);
});
