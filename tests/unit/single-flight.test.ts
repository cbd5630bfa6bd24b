import { expect, test, vi } from 'vitest';
import { singleFlight } from '#lib/concurrency/single-flight';

test('With singleFlight(), concurrent calls with the same key share one run of the work, and isLeader is true for one call', async () => {
  let finish = (_value: string) => {};
  const work = vi.fn(
    () =>
      new Promise<string>((resolve) => {
        finish = resolve;
      }),
  );
  const shared = singleFlight(work);
  const calls = [shared('a'), shared('a'), shared('a')];
  finish('done');
  const results = await Promise.all(calls);
  expect(results.map(({ result }) => result)).toEqual(['done', 'done', 'done']);
  expect(results.filter(({ isLeader }) => isLeader)).toHaveLength(1);
  expect(work).toHaveBeenCalledTimes(1);
});

test('With singleFlight(), a call with a different key and a call after the end of a run each start a new run', async () => {
  const work = vi.fn(async (key: string) => key);
  const shared = singleFlight(work);
  await Promise.all([shared('a'), shared('b')]);
  expect(await shared('a')).toEqual({ result: 'a', isLeader: true });
  expect(work).toHaveBeenCalledTimes(3);
});

test('With singleFlight(), concurrent calls share a failure, and a later call starts a new run', async () => {
  const work = vi
    .fn<(key: string) => Promise<string>>()
    .mockRejectedValueOnce(new Error('lost'))
    .mockResolvedValue('found');
  const shared = singleFlight(work);
  const outcomes = await Promise.allSettled([shared('a'), shared('a')]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect((await shared('a')).result).toBe('found');
});
