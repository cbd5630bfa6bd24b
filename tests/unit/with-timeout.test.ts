import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { withTimeout } from '#lib/concurrency/with-timeout';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('withTimeout() returns the result or the error of work that settles in time, and leaves no timer', async () => {
  expect(await withTimeout(1_000, Promise.resolve('done'))).toBe('done');
  await expect(withTimeout(1_000, Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(vi.getTimerCount()).toBe(0);
});

test('withTimeout() rejects with a TimeoutError if the work does not settle in time', async () => {
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
