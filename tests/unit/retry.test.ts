import { expect, test } from 'vitest';
import { retry, TransientError } from '#lib/concurrency/retry';

/** Retries work that throws the given errors, one per attempt. Only the waits advance the clock. */
async function waitsOf(seconds: number, errors: readonly unknown[]) {
  let time = 0;
  let attempts = 0;
  const waits: number[] = [];
  const outcome = await retry(
    {
      seconds,
      now: () => time,
      onWait: (_reason, wait) => waits.push(wait),
      sleep: async (milliseconds) => {
        time += milliseconds;
      },
    },
    async () => {
      const error = errors[attempts];
      attempts += 1;
      if (error !== undefined) throw error;
      return 'done';
    },
  ).catch((error: unknown) => error);
  return { outcome, waits };
}

const down = new TransientError('is down');
const limited = (seconds: number) => new TransientError('requests a pause', seconds);
const many = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

test('retry() retries a transient error after 0.5 s and doubles the delay up to 15 s', async () => {
  expect(await waitsOf(60, many(6, down))).toEqual({ outcome: 'done', waits: [0.5, 1, 2, 4, 8, 15] });
});

test('retry() throws a persistent error when the time limit is reached, and never waits longer', async () => {
  const { outcome, waits } = await waitsOf(20, many(100, down));
  expect(outcome).toBe(down);
  expect(waits.reduce((sum, wait) => sum + wait, 0)).toBeLessThanOrEqual(20);
});

test('A requested pause has the requested length and does not count towards the time limit', async () => {
  const errors = [limited(7), limited(30), down, limited(1)];
  expect(await waitsOf(1, errors)).toEqual({ outcome: 'done', waits: [7, 30, 0.5, 1] });
});

test('The length and the number of requested pauses are limited', async () => {
  expect((await waitsOf(60, [limited(86_400)])).outcome).toMatchObject({ retryAfterSeconds: 86_400 });
  expect((await waitsOf(60, many(1_000, limited(1)))).waits).toHaveLength(60);
});

test('retry() throws any other error immediately', async () => {
  const error = new Error('rejected');
  expect(await waitsOf(60, [error])).toEqual({ outcome: error, waits: [] });
});
