import { expect, test, vi } from 'vitest';
import { log } from '#lib/log';
import { lineLimiter, redactConsole } from '#lib/server/redact-console';

test('The service logs at most one line a minute for each place at which a library prints, and the next line contains the number of omitted lines', () => {
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

// `lineLimiter` limits the lines of each origin. An origin is a text that identifies the code that prints a line.
test('lineLimiter() limits the number of origins that it stores', () => {
  const limit = lineLimiter();
  for (let origin = 0; origin < 1_000; origin += 1) expect(limit(`frame ${origin}`)).toBe(0);
  expect(limit('frame 999')).toBeUndefined();
  expect(limit('frame 0')).toBe(0);
});

/**
 * Redacts the console with NODE_ENV set to `mode` and calls `print` with the console. Returns the calls of the log and of the
 * original console.
 */
function printed(print: (library: Console) => void, mode = 'production') {
  vi.stubEnv('NODE_ENV', mode);
  const calls: unknown[] = [];
  const record =
    (level: string) =>
    (...values: unknown[]) =>
      void calls.push([level, ...values]);
  vi.spyOn(log, 'warn').mockImplementation(record('warn'));
  vi.spyOn(log, 'error').mockImplementation(record('error'));
  const given = { ...console };
  const original = vi.fn();
  Object.assign(console, { log: original, info: original, debug: original, trace: original, warn: original });
  redactConsole();
  try {
    print(console);
  } finally {
    Object.assign(console, given);
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  }
  return { calls, original: original.mock.calls };
}

test('An error that a library prints is logged with its name, its frames and its causes, but without messages', () => {
  const cause = new RangeError('cause of alice');
  const error = Object.assign(new TypeError('message of alice', { cause }), { digest: '123@E45' });
  const { calls } = printed((library) => library.error('text of alice', error));
  expect(calls).toEqual([
    [
      'error',
      {
        error: {
          name: 'TypeError',
          frames: expect.any(Array),
          cause: { name: 'RangeError', frames: expect.any(Array) },
        },
        digest: '123@E45',
      },
      'printed by a library',
    ],
  ]);
});

test('The digest of an error is logged if the digest has the format of Next.js', () => {
  const { calls } = printed((library) => library.error(Object.assign(new Error('a'), { digest: 123 })));
  expect(calls).toMatchObject([['error', { digest: '123' }, 'printed by a library']]);
});

test.each(['x123', '123x', '123@E', 'alice'])(
  'The digest of an error is not logged if the digest does not have the format of Next.js: %s',
  (digest) => {
    const { calls } = printed((library) => library.error(Object.assign(new Error('a'), { digest })));
    expect(JSON.stringify(calls)).not.toContain('digest');
  },
);

test('If a library prints a text, the log contains the stack frames of the library instead of the text', () => {
  const { calls } = printed(function library(console) {
    console.warn('text');
  });
  const frames = expect.arrayContaining([expect.stringContaining('library')]);
  expect(calls).toEqual([['warn', { frames }, 'printed by a library']]);
  expect(JSON.stringify(calls)).not.toContain('redact-console.ts');
});

test('Errors that a library prints at one place are logged separately if they were created at different places', () => {
  const create = (message: string) => new Error(message);
  const linesFor = (...errors: readonly Error[]) =>
    printed((library) => {
      for (const error of errors) library.error(error);
    }).calls.length;
  expect(linesFor(create('a'), new Error('a'))).toBe(2);
  const [one, other] = ['a', 'b'].map(create);
  expect(linesFor(one ?? create('a'), other ?? create('b'))).toBe(1);
});

test('If stack traces are turned off, a line that a library prints is logged without stack frames', () => {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const { calls } = printed((library) => {
    library.warn('text');
    library.error(new TypeError('text'));
  });
  Error.stackTraceLimit = stackTraceLimit;
  expect(calls).toEqual([
    ['warn', { frames: [] }, 'printed by a library'],
    ['error', { error: { name: 'TypeError' } }, 'printed by a library'],
  ]);
});

test('Console lines below the level of a warning are dropped', () => {
  const { calls, original } = printed((library) => {
    for (const level of ['log', 'info', 'debug', 'trace'] as const) library[level]('text');
  });
  expect([calls, original]).toEqual([[], []]);
});

test('Under `next dev`, the console is unchanged', () => {
  const { calls, original } = printed((library) => library.warn('text'), 'development');
  expect([calls, original]).toEqual([[], [['text']]]);
});

test('lineLimiter() lets the next line of an origin pass after a minute', () => {
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  const limit = lineLimiter();
  const at = (milliseconds: number) => {
    now.mockReturnValue(milliseconds);
    return limit('frame');
  };
  expect([at(0), at(1), at(59_999), at(60_000), at(60_001)]).toEqual([0, undefined, undefined, 2, undefined]);
  now.mockRestore();
});

test('lineLimiter() stores up to 100 origins, and a further origin replaces all of them', () => {
  const limit = lineLimiter();
  for (let origin = 0; origin < 100; origin += 1) limit(`frame ${origin}`);
  expect(limit('frame 0')).toBeUndefined();
  expect(limit('frame 100')).toBe(0);
  expect(limit('frame 0')).toBe(0);
});
