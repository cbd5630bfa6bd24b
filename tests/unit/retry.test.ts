import { expect, test, vi } from 'vitest';
import { retry, TransientError } from '#lib/concurrency/retry';

/**
 * Calls `retry` with a time limit in seconds and a function that throws the given errors, one per attempt, and then succeeds.
 * Returns the outcome and the delays in seconds. The clock advances only during the delays.
 */
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

test('retry() throws a persistent error instead of starting a wait that would exceed the time limit', async () => {
  expect(await waitsOf(20, many(100, down))).toEqual({ outcome: down, waits: [0.5, 1, 2, 4, 8] });
  expect((await waitsOf(15.5, many(100, down))).waits).toHaveLength(5);
  expect((await waitsOf(15.4, many(100, down))).waits).toHaveLength(4);
});

test('retry() waits as long as an error requests, and the requested delay does not count towards the time limit', async () => {
  const errors = [limited(7), limited(30), down, limited(1)];
  expect(await waitsOf(1, errors)).toEqual({ outcome: 'done', waits: [7, 30, 0.5, 1] });
});

test('retry() accepts up to 60 requested pauses of up to 300 s', async () => {
  expect((await waitsOf(60, [limited(300)])).outcome).toBe('done');
  expect((await waitsOf(60, [limited(301)])).outcome).toMatchObject({ retryAfterSeconds: 301 });
  expect((await waitsOf(60, many(1_000, limited(1)))).waits).toHaveLength(60);
});

test('retry() immediately throws an error that is not a TransientError', async () => {
  const error = new Error('rejected');
  expect(await waitsOf(60, [error])).toEqual({ outcome: error, waits: [] });
});

test('If the caller passes no clock, retry() uses the real time', async () => {
  let attempts = 0;
  const outcome = await retry({ seconds: 0.6 }, async () => {
    attempts += 1;
    throw down;
  }).catch((error: unknown) => error);
  // The first delay is 0.5 s. The second delay would exceed the limit.
  expect([outcome, attempts]).toEqual([down, 2]);
});

test('onWait() receives the message of the error and the delay in seconds', async () => {
  const onWait = vi.fn();
  await retry({ seconds: 1, onWait, sleep: async () => undefined }, vi.fn().mockRejectedValueOnce(down));
  expect(onWait).toHaveBeenCalledExactlyOnceWith('is down', 0.5);
  expect(down.name).toBe('TransientError');
});
