import { afterEach, beforeEach, expect, type MockInstance, vi } from 'vitest';

// Fails each test during which `console.error` was called.
let consoleError: MockInstance;

beforeEach(() => {
  consoleError = vi.spyOn(console, 'error');
});

afterEach(() => {
  const calls = consoleError.mock.calls;
  consoleError.mockRestore();
  expect(calls, 'unexpected console.error').toEqual([]);
});
