import { expect, test, vi } from 'vitest';
import { batch } from '#lib/core/async';

test('The items of one event loop iteration are one call, and each gets its own result', async () => {
  const run = vi.fn(async (items: readonly number[]) => items.map((item) => item * 2));
  const double = batch(run);
  expect(await Promise.all([1, 2, 1].map(double))).toEqual([2, 4, 2]);
  expect(await double(3)).toBe(6);
  expect(run.mock.calls).toEqual([[[1, 2, 1]], [[3]]]);
});

test('A failed call rejects for each of its items, and not for later ones', async () => {
  const run = vi.fn(async (items: readonly string[]) => items).mockRejectedValueOnce(new Error('failed'));
  const send = batch(run);
  expect((await Promise.allSettled(['a', 'b'].map(send))).map(({ status }) => status)).toEqual([
    'rejected',
    'rejected',
  ]);
  expect(await send('c')).toBe('c');
});
