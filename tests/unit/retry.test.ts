import { expect, test } from 'vitest';
import { TransientError } from '#lib/base/errors';
import { retry } from '#lib/base/retry';

/**
 * Calls `retry` with a limit in seconds and a function that throws the given errors, one per attempt, and then succeeds. Returns
 * the outcome and the pauses in seconds.
 */
async function pausesOf(seconds: number, errors: readonly unknown[]) {
  const pauses: number[] = [];
  const pending = [...errors];
  const work = async () => {
    const error = pending.shift();
    if (error !== undefined) throw error;
    return 'done';
  };
  const sleep = async (milliseconds: number) => pauses.push(milliseconds / 1000);
  const outcome = await retry({ seconds, sleep }, work).catch((error: unknown) => error);
  return { outcome, pauses };
}

const down = new TransientError('is down');
const limited = (seconds: number) => new TransientError('requests a pause', seconds);
const fatal = new Error('rejected');
const many = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

test.each([
  ['doubles the pause up to 15 s', 60, many(6, down), 'done', [0.5, 1, 2, 4, 8, 15]],
  ['throws the error if the next pause would exceed the limit', 20, many(9, down), down, [0.5, 1, 2, 4, 8]],
  ['pauses as long as the server requests', 40, [limited(7), down, limited(30)], 'done', [7, 1, 30]],
  ['counts requested pauses', 10, [limited(7), limited(7)], expect.any(TransientError), [7]],
  ['pauses at least as long as without a requested pause', 5, many(9, limited(0)), limited(0), [0.5, 1, 2]],
  ['throws any other error immediately', 60, [fatal], fatal, []],
])('A retry %s', async (_what, seconds, errors, outcome, pauses) => {
  expect(await pausesOf(seconds, errors)).toEqual({ outcome, pauses });
});

test('A retry really pauses, and reports the message of the error and the pause in seconds', async () => {
  const waits: unknown[] = [];
  const onWait = (...wait: unknown[]) => waits.push(wait);
  await expect(retry({ seconds: 0.5, onWait }, () => Promise.reject(limited(0.01)))).rejects.toThrow('pause');
  expect(waits).toEqual([['requests a pause', 0.5]]);
});
