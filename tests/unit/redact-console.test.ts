import { expect, test, vi } from 'vitest';
import { log } from '#lib/log';
import { lineLimiter, redactConsole } from '#lib/server/redact-console';

test('A library that prints on each request gets one log line a minute with the number of omitted lines', () => {
  vi.useFakeTimers();
  vi.stubEnv('NODE_ENV', 'production');
  const warn = vi.spyOn(log, 'warn').mockReturnValue();
  const given = { ...console };
  redactConsole();
  const library = console;
  const print = () => library.warn('a value that a client sent');
  const printElsewhere = () => library.warn('another value');
  for (let line = 0; line < 1_000; line += 1) print();
  printElsewhere();
  expect(warn).toHaveBeenCalledTimes(2);
  vi.advanceTimersByTime(60_000);
  print();
  expect(warn).toHaveBeenCalledTimes(3);
  expect(warn.mock.calls[2]?.[0]).toMatchObject({ omitted: 999 });
  expect(JSON.stringify(warn.mock.calls)).not.toContain('value');
  Object.assign(console, given);
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

test('lineLimiter() limits the number of origins that it stores', () => {
  const limit = lineLimiter();
  for (let origin = 0; origin < 1_000; origin += 1) expect(limit(`frame ${origin}`)).toBe(0);
  expect(limit('frame 999')).toBeUndefined();
  expect(limit('frame 0')).toBe(0);
});
