import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { batchLoader } from '#lib/concurrency/batch-loader';

// batchLoader() collects keys in a batch. A lookup is a call of `lookUp` with the keys of a batch. In these tests, the value of
// a key is its length.
const lengths = (keys: readonly string[]) => new Map(keys.map((key) => [key, key.length]));
const lookUp = vi.fn<(keys: readonly string[]) => Promise<ReadonlyMap<string, number>>>();
/** Returns the keys of each lookup so far. */
const lookups = () => lookUp.mock.calls.map(([keys]) => keys);
/** Waits for one event loop iteration. */
const nextIteration = () => vi.advanceTimersByTimeAsync(0);

/** Keeps the next lookup pending until the test settles it. */
function holdOne() {
  let end = { resolve: () => {}, reject: (_error: Error) => {} };
  lookUp.mockImplementationOnce(
    (keys) =>
      new Promise((resolve, reject) => {
        end = { resolve: () => resolve(lengths(keys)), reject };
      }),
  );
  return { resolve: () => end.resolve(), reject: (error: Error) => end.reject(error) };
}

beforeEach(() => {
  vi.useFakeTimers();
  lookUp.mockReset().mockImplementation(async (keys) => lengths(keys));
});
afterEach(() => {
  vi.useRealTimers();
});

test('A single key is looked up in the next event loop iteration', async () => {
  const find = batchLoader(lookUp);
  const found = find('one');
  await nextIteration();
  expect(await found).toBe(3);
  expect(lookups()).toEqual([['one']]);
});

test('Keys of one event loop iteration share a lookup, and keys that arrive while a lookup is pending share the next lookup', async () => {
  const find = batchLoader(lookUp);
  const first = holdOne();
  const early = ['a', 'bb'].map(find);
  await nextIteration();
  const late = ['ccc', 'dddd', 'ccc'].map(find);
  await nextIteration();
  expect(lookups()).toEqual([['a', 'bb']]);
  first.resolve();
  expect(await Promise.all([...early, ...late])).toEqual([1, 2, 3, 4, 3]);
  expect(lookups()).toEqual([
    ['a', 'bb'],
    ['ccc', 'dddd'],
  ]);
});

test('A key waits at most 5 ms for a pending lookup', async () => {
  const find = batchLoader(lookUp);
  holdOne();
  void find('pending');
  await nextIteration();
  const found = find('bb');
  await vi.advanceTimersByTimeAsync(4);
  expect(lookups()).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(await found).toBe(2);
});

test('A lookup contains at most 100 keys', async () => {
  const find = batchLoader(lookUp);
  holdOne();
  void find('pending');
  await nextIteration();
  const found = Array.from({ length: 250 }, (_, index) => find(`key ${index}`));
  await vi.advanceTimersByTimeAsync(5);
  await Promise.all(found);
  expect(lookups().map(({ length }) => length)).toEqual([1, 100, 100, 50]);
});

test('A key without a value resolves to undefined, and a failed lookup rejects only the calls for the keys of this lookup', async () => {
  const find = batchLoader(lookUp);
  lookUp.mockResolvedValueOnce(new Map());
  const absent = find('absent');
  await nextIteration();
  expect(await absent).toBeUndefined();
  lookUp.mockRejectedValueOnce(new Error('no response'));
  const together = [find('a'), find('bb')];
  const outcomes = Promise.allSettled(together);
  await nextIteration();
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const after = find('ccc');
  await nextIteration();
  expect(await after).toBe(3);
});

test('After a lookup has succeeded, the next batch again collects the keys of a whole event loop iteration', async () => {
  const find = batchLoader(lookUp);
  const first = find('a');
  await nextIteration();
  await first;
  const second = find('bb');
  // The first lookup has settled. If the batch of the second key waited for that lookup and not for the next iteration, the
  // batch would be sent after a few microtasks, without the third key.
  for (let microtask = 0; microtask < 20; microtask += 1) await Promise.resolve();
  const third = find('ccc');
  await nextIteration();
  expect(await Promise.all([second, third])).toEqual([2, 3]);
  expect(lookups()).toEqual([['a'], ['bb', 'ccc']]);
});

test('If an older lookup settles while a newer lookup is pending, a key waits for the newer lookup', async () => {
  const find = batchLoader(lookUp);
  const [older, newer] = [holdOne(), holdOne()];
  void find('a');
  await nextIteration();
  void find('bb');
  await vi.advanceTimersByTimeAsync(5);
  expect(lookups()).toHaveLength(2);
  older.resolve();
  await nextIteration();
  const found = find('ccc');
  await nextIteration();
  expect(lookups()).toHaveLength(2);
  newer.resolve();
  expect(await found).toBe(3);
});

test('A key that waits for a pending lookup is looked up as soon as that lookup fails', async () => {
  const find = batchLoader(lookUp);
  const first = holdOne();
  const failed = find('a').catch((error: Error) => error.message);
  await nextIteration();
  const found = find('bb');
  first.reject(new Error('no response'));
  await nextIteration();
  expect([await failed, await found]).toEqual(['no response', 2]);
});

test('A batch that was opened while a full batch waited still accepts keys after the full batch is sent', async () => {
  const find = batchLoader(lookUp);
  holdOne();
  void find('pending');
  await nextIteration();
  const keys = Array.from({ length: 100 }, (_, index) => `key ${index}`);
  void Promise.all(keys.map(find));
  await vi.advanceTimersByTimeAsync(2);
  void find('one more');
  await vi.advanceTimersByTimeAsync(3);
  expect(lookups()).toEqual([['pending'], keys]);
  const second = holdOne();
  void find('late');
  await vi.advanceTimersByTimeAsync(2);
  second.resolve();
  expect(lookups()).toEqual([['pending'], keys, ['one more', 'late']]);
});
