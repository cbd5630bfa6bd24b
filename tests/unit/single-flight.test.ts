import { expect, test, vi } from 'vitest';
import { singleFlight } from '#lib/concurrency/single-flight';

const keyOf = (key: string) => key;

test('Concurrent calls with the same key share one run of the work. A call with another key, or after the end of a run, starts a new run', async () => {
  const work = vi.fn(async (key: string) => ({ key }));
  const shared = singleFlight(work, keyOf);
  const [one, same, other] = await Promise.all([shared('a'), shared('a'), shared('b')]);
  expect(same).toBe(one);
  expect(other).toEqual({ key: 'b' });
  expect(await shared('a')).not.toBe(one);
  expect(work).toHaveBeenCalledTimes(3);
});

test('Concurrent calls share a failure, and a later call starts a new run', async () => {
  const work = vi.fn(async (key: string) => key).mockRejectedValueOnce(new Error('lost'));
  const shared = singleFlight(work, keyOf);
  const outcomes = await Promise.allSettled([shared('a'), shared('a')]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await shared('a')).toBe('a');
});
