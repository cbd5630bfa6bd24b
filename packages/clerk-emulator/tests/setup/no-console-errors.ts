import { afterEach, beforeEach, expect, type MockInstance, vi } from 'vitest';

let consoleError: MockInstance;
beforeEach(() => {
  consoleError = vi.spyOn(console, 'error');
});
/** Fails each test during which `console.error` was called. */
afterEach(() => {
  const { calls } = consoleError.mock;
  consoleError.mockRestore();
  expect(calls, 'unexpected console.error').toEqual([]);
});
