import { expect, test, vi } from 'vitest';
import { closeDependencies, onShutdown } from '#lib/base/shutdown';

// tests/unit/health.test.ts checks that a shutdown begins once, and that every copy of the module reports it.

test('A shutdown calls each registered function once, even if it was registered twice or if another function rejects', async () => {
  const failing = vi.fn(() => Promise.reject(new Error('still in use')));
  const other = vi.fn(async () => undefined);
  for (const hook of [failing, other, other]) onShutdown(hook);
  await closeDependencies();
  expect([failing, other].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
});
