import { afterEach, expect, test, vi } from 'vitest';
import { batch, singleFlight, withTimeout } from '#lib/core/async';

afterEach(() => {
  vi.useRealTimers();
});

test('Concurrent calls with the same key share one run of the work. A call with another key, or after the end of a run, starts a new run', async () => {
  const work = vi.fn(async () => ({}));
  const shared = singleFlight<object>();
  const [one, same, other] = await Promise.all(['a', 'a', 'b'].map((key) => shared(key, work)));
  expect(same).toBe(one);
  expect(other).not.toBe(one);
  expect(await shared('a', work)).not.toBe(one);
  expect(work).toHaveBeenCalledTimes(3);
});

test('Concurrent calls share a failure, and a later call starts a new run', async () => {
  const work = vi.fn(async () => 'result').mockRejectedValueOnce(new Error('lost'));
  const shared = singleFlight<string>();
  const outcomes = await Promise.allSettled([shared('a', work), shared('a', work)]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await shared('a', work)).toBe('result');
});

test('The items of one event loop iteration are one call, each gets its own result, and a failed call rejects for each of its items alone', async () => {
  const run = vi.fn(async (items: readonly number[]) => items.map((item) => item * 2));
  const double = batch(run);
  expect(await Promise.all([1, 2, 1].map(double))).toEqual([2, 4, 2]);
  run.mockRejectedValueOnce(new Error('failed'));
  const failed = await Promise.allSettled([3, 4].map(double));
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await double(5)).toBe(10);
  expect(run.mock.calls).toEqual([[[1, 2, 1]], [[3, 4]], [[5]]]);
});

test('Work that settles in time keeps its result or error, and leaves no timer', async () => {
  vi.useFakeTimers();
  expect(await withTimeout(1_000, Promise.resolve('done'))).toBe('done');
  await expect(withTimeout(1_000, Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(vi.getTimerCount()).toBe(0);
});

test('Work that does not settle in time fails with a TimeoutError', async () => {
  vi.useFakeTimers();
  const rejected = vi.fn();
  const waiting = withTimeout(1_000, new Promise(() => undefined)).catch(rejected);
  await vi.advanceTimersByTimeAsync(999);
  expect(rejected).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await waiting;
  expect(rejected).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ name: 'TimeoutError', message: 'Timed out' }),
  );
});
