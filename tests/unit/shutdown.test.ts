import { beforeEach, expect, test, vi } from 'vitest';

const load = () => import('#lib/base/shutdown');
/** Removes the shutdown state, which all copies of the module in a process share. */
const forgetState = () => Reflect.deleteProperty(globalThis, Symbol.for('identity-link.shutdown'));

beforeEach(() => {
  vi.resetModules();
  forgetState();
});

test('A shutdown begins once, and every copy of the module in the process reports it', async () => {
  const { beginShutdown, isShuttingDown } = await load();
  expect(isShuttingDown()).toBe(false);
  expect([beginShutdown(), beginShutdown()]).toEqual([true, false]);
  vi.resetModules();
  expect((await load()).isShuttingDown()).toBe(true);
});

test('A shutdown calls each registered function once, even if it was registered twice or if another function rejects', async () => {
  const { closeDependencies, onShutdown } = await load();
  const failing = vi.fn(() => Promise.reject(new Error('still in use')));
  const other = vi.fn(async () => undefined);
  for (const hook of [failing, other, other]) onShutdown(hook);
  await closeDependencies();
  expect([failing, other].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
});
