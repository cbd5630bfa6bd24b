import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type CredentialMemory, credentialMemory } from '#lib/idp/credential-memory';

let memory: CredentialMemory;
const inAnHour = () => Date.now() + 3_600_000;

beforeEach(() => {
  vi.useFakeTimers();
  memory = credentialMemory();
});
afterEach(() => {
  vi.useRealTimers();
});

test('The cache returns the value of the same credential only', () => {
  memory.keep(['cookie', 'a'], 'one', inAnHour());
  expect(memory.recall(['cookie', 'a'])).toBe('one');
  for (const other of [
    ['authorization', 'a'],
    ['cookie', 'a '],
    ['cookie'],
    ['cookie', 'a', ''],
    ['cookiea'],
    [],
  ]) {
    expect(memory.recall(other)).toBeUndefined();
  }
});

test('Different divisions of a credential into parts have different keys', () => {
  memory.keep(['a', 'b","c'], 'one', inAnHour());
  expect(memory.recall(['a', 'b', 'c'])).toBeUndefined();
  expect(memory.recall(['a","b', 'c'])).toBeUndefined();
});

describe('Expiry and eviction', () => {
  test('An entry expires after 60 s, even if it is read often', () => {
    memory.keep(['a'], 'one', inAnHour());
    for (let second = 0; second < 59; second += 1) {
      vi.advanceTimersByTime(1_000);
      expect(memory.recall(['a'])).toBe('one');
    }
    vi.advanceTimersByTime(1_001);
    expect(memory.recall(['a'])).toBeUndefined();
  });

  test('An entry expires with its credential, even if the process was suspended', () => {
    memory.keep(['a'], 'one', Date.now() + 10_000);
    vi.advanceTimersByTime(9_999);
    expect(memory.recall(['a'])).toBe('one');
    // Moves only the wall clock, as after a suspension.
    vi.setSystemTime(Date.now() + 2);
    expect(memory.recall(['a'])).toBeUndefined();
  });

  test('An expired credential is not cached', () => {
    for (const expires of [Date.now(), Date.now() - 1, Number.NEGATIVE_INFINITY, Number.NaN]) {
      memory.keep(['a'], 'one', expires);
      expect(memory.recall(['a'])).toBeUndefined();
    }
  });

  test('The cache keeps the latest 5,000 entries', () => {
    for (let index = 0; index < 10_000; index += 1) memory.keep([`token ${index}`], 'one', inAnHour());
    const recalled = Array.from(
      { length: 10_000 },
      (_, index) => memory.recall([`token ${index}`]) === 'one',
    );
    expect(recalled.indexOf(true)).toBe(5_000);
    expect(recalled.filter(Boolean)).toHaveLength(5_000);
  });

  test('The cache keeps at most 4 MB', () => {
    const value = 'x'.repeat(40_000);
    for (let index = 0; index < 1_000; index += 1) memory.keep([`token ${index}`], value, inAnHour());
    const recalled = Array.from({ length: 1_000 }, (_, index) => memory.recall([`token ${index}`]) === value);
    expect(recalled.filter(Boolean).length * value.length).toBeLessThan(4 * 1024 * 1024);
    expect(recalled.at(-1)).toBe(true);
  });
});

test('The cache stores only a digest of the credential', () => {
  const stored: unknown[] = [];
  const set = vi.spyOn(Map.prototype, 'set').mockImplementation(function (
    this: Map<unknown, unknown>,
    ...entry
  ) {
    stored.push(...entry);
    return this;
  });
  memory.keep(['the token itself'], 'one', inAnHour());
  set.mockRestore();
  expect(stored.length).toBeGreaterThan(0);
  expect(JSON.stringify(stored)).not.toContain('the token itself');
});
