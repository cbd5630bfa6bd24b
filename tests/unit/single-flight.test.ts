import { expect, test, vi } from 'vitest';
import { singleFlight } from '#lib/core/async';

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
