import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type SessionCache, sessionCache } from '#lib/idp/session-cache';

let cache: SessionCache;
const HOUR_MS = 3_600_000;

/** Returns a session token that expires at the time `expires` (milliseconds since 1970). */
const tokenUntil = (expires: number, name = '') =>
  `ey.${Buffer.from(JSON.stringify({ exp: expires / 1000, name })).toString('base64url')}.x`;
const credential = (token: string, header: 'cookie' | 'authorization' = 'authorization') => ({
  header,
  value: `Bearer ${token}`,
  token,
});
const session = (user = 'user_1') => ({ user, signature: `signature of ${user}` });

beforeEach(() => {
  vi.useFakeTimers();
  cache = sessionCache();
});
afterEach(() => {
  vi.useRealTimers();
});

test('The session cache returns the session of a credential, and returns no session for a different credential', () => {
  const token = tokenUntil(Date.now() + HOUR_MS);
  cache.set(credential(token), session());
  expect(cache.get(credential(token))).toEqual(session());
  expect(cache.get(credential(token, 'cookie'))).toBeUndefined();
  expect(cache.get({ ...credential(token), value: `Bearer ${token} ` })).toBeUndefined();
  expect(cache.get(credential(tokenUntil(Date.now() + HOUR_MS, 'other')))).toBeUndefined();
});

test('If the cookies of a request contain several session tokens, `token` is undefined, and the session cache does not store the session', () => {
  const several = { ...credential(tokenUntil(Date.now() + HOUR_MS)), token: undefined };
  cache.set(several, session());
  expect(cache.get(several)).toBeUndefined();
});

test('A cached session expires after 60 s, even if it is read often', () => {
  const stored = credential(tokenUntil(Date.now() + HOUR_MS));
  cache.set(stored, session());
  for (let second = 0; second < 59; second += 1) {
    vi.advanceTimersByTime(1_000);
    expect(cache.get(stored)).toEqual(session());
  }
  vi.advanceTimersByTime(1_001);
  expect(cache.get(stored)).toBeUndefined();
});

test('A cached session expires with its token, even if the process was suspended in the meantime', () => {
  const stored = credential(tokenUntil(Date.now() + 10_000));
  cache.set(stored, session());
  vi.advanceTimersByTime(9_999);
  expect(cache.get(stored)).toEqual(session());
  // When a suspended process resumes, the time of day is later, but no timers have run.
  vi.setSystemTime(Date.now() + 2);
  expect(cache.get(stored)).toBeUndefined();
});

test.each([0, -1, -HOUR_MS])(
  'The session cache does not store a session whose token expires now or has expired: remaining time %i ms',
  (milliseconds) => {
    const stored = credential(tokenUntil(Date.now() + milliseconds));
    cache.set(stored, session());
    expect(cache.get(stored)).toBeUndefined();
  },
);

test('The session cache holds at most 5,000 sessions and drops the oldest sessions first', () => {
  const expires = Date.now() + HOUR_MS;
  const all = Array.from({ length: 10_000 }, (_, index) => credential(tokenUntil(expires, `${index}`)));
  for (const each of all) cache.set(each, session());
  const kept = all.map((each) => cache.get(each) !== undefined);
  expect(kept.indexOf(true)).toBe(5_000);
  expect(kept.filter(Boolean)).toHaveLength(5_000);
});

test('The session cache holds at most 4 MiB', () => {
  const expires = Date.now() + HOUR_MS;
  const long = session('x'.repeat(40_000));
  const all = Array.from({ length: 1_000 }, (_, index) => credential(tokenUntil(expires, `${index}`)));
  for (const each of all) cache.set(each, long);
  const kept = all.map((each) => cache.get(each) !== undefined);
  expect(kept.filter(Boolean).length * 40_000).toBeLessThan(4 * 1024 * 1024);
  expect(kept.at(-1)).toBe(true);
});

test('The session cache does not store the token of a credential', () => {
  const stored: unknown[] = [];
  const set = vi.spyOn(Map.prototype, 'set').mockImplementation(function (
    this: Map<unknown, unknown>,
    ...entry
  ) {
    stored.push(...entry);
    return this;
  });
  const token = tokenUntil(Date.now() + HOUR_MS);
  cache.set(credential(token), session());
  set.mockRestore();
  expect(stored.length).toBeGreaterThan(0);
  expect(JSON.stringify(stored)).not.toContain(token);
});
