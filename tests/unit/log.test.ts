import pino from 'pino';
import { expect, test, vi } from 'vitest';
import { describeError, InvalidEnvironmentError } from '#lib/base/errors';
import { log, rateLimitedWarning } from '#lib/base/log';
import { enableTelemetry } from '#lib/base/telemetry';
import type { RequestFields } from '#lib/core/ports';
import { requestIdOf } from '#lib/core/route';
import { addLogFields, withLogFields } from '#lib/http/request-log';

// describeError() returns the fields of an error for the log. It omits texts that may contain personal data or keys.
test('The log has the name, the code, the message and up to six stack frames of an error', () => {
  const error = Object.assign(new Error('outer'), { code: '23505' });
  error.stack = `Error: outer\nThe caller was at alice@example.com\n${'    at f (a.js:1:1)\n'.repeat(9)}`;
  expect(describeError(error)).toEqual({
    name: 'Error',
    code: '23505',
    message: 'outer',
    frames: Array.from({ length: 6 }, () => 'at f (a.js:1:1)'),
  });
  Reflect.deleteProperty(error, 'stack');
  expect(describeError(error)).toEqual({ name: 'Error', code: '23505', message: 'outer' });
  expect(describeError('sk_test_1')).toEqual({ name: 'string' });
});

test('The log has up to three causes of an error', () => {
  const chain = [1, 2, 3, 4].reduce((cause) => new Error('x', { cause }), new Error('root'));
  const { cause } = describeError(chain);
  expect(cause?.cause?.cause).toMatchObject({ name: 'Error' });
  expect(cause?.cause?.cause).not.toHaveProperty('cause');
});

const prismaError = (originalCode: unknown) =>
  Object.assign(new Error('Raw query failed'), { meta: { driverAdapterError: { cause: { originalCode } } } });

test.each<[field: 'message' | 'code' | 'sqlState', value: string, isLogged: boolean]>([
  ['message', "Can't connect, try again.", true],
  ['message', 'x'.repeat(100), true],
  ['message', 'x'.repeat(101), false],
  ['message', '', false],
  ['message', 'a=b', false],
  ['message', '7 rows', false],
  ['message', 'connect to ada@example.com', false],
  ['code', 'C'.repeat(40), true],
  ['code', 'C'.repeat(41), false],
  ['code', 'alice@example.com', false],
  ['sqlState', '42P10', true],
  ['sqlState', '42P10 alice@example.com', false],
])(
  'The log has the %s of an error only in a form that has no data of a user: %j, %s',
  (field, value, isLogged) => {
    const error = {
      message: new Error(value),
      code: Object.assign(new Error('x'), { code: value }),
      sqlState: prismaError(value),
    }[field];
    expect(describeError(error)[field]).toBe(isLogged ? value : undefined);
  },
);

test('The log has the message of an InvalidEnvironmentError, and in development that of every error', () => {
  const error = new InvalidEnvironmentError(['DATABASE_URL is missing']);
  expect(describeError(error).message).toContain('DATABASE_URL is missing');
  vi.stubEnv('NODE_ENV', 'development');
  expect(describeError(new Error('7 rows')).message).toBe('7 rows');
  vi.unstubAllEnvs();
});

test('A line of the message of an error is not logged as a stack frame, even if the name or the message has changed', () => {
  const error = new Error('x\n    at alice@example.com (sk_test_abc:1:1)');
  expect(error.stack).toBeDefined();
  expect(describeError(error).frames?.length).toBeGreaterThan(0);
  for (const change of [{}, { name: 'Renamed' }, { message: 'another one' }])
    expect(JSON.stringify(describeError(Object.assign(error, change)))).not.toMatch(/alice|sk_test/);
});

test('Log fields belong to the current request and do not mix between concurrent requests', async () => {
  const fields: RequestFields[] = [{}, {}];
  await Promise.all(
    fields.map((own, index) =>
      withLogFields(own, async () => {
        await Promise.resolve();
        addLogFields({ messageId: `msg_${index}` });
      }),
    ),
  );
  expect(fields).toEqual([{ messageId: 'msg_0' }, { messageId: 'msg_1' }]);
  expect(() => addLogFields({ cache: 'hit' })).not.toThrow();
});

test('Each rate-limited warning is logged at most once a minute, independently of other warnings', () => {
  const warn = vi.spyOn(log, 'warn').mockReturnValue();
  const now = vi.spyOn(performance, 'now').mockReturnValue(5);
  const [one, other] = [rateLimitedWarning('one'), rateLimitedWarning('other')];
  one({ a: 1 });
  one({ a: 2 });
  other();
  now.mockReturnValue(60_004);
  one({ a: 3 });
  now.mockReturnValue(60_005);
  one({ a: 4 });
  one({ a: 5 });
  expect(warn.mock.calls).toEqual([
    [{ a: 1 }, 'one'],
    [{}, 'other'],
    [{ a: 4 }, 'one'],
  ]);
  vi.restoreAllMocks();
});

test.each([
  ['req-1_a.b:c', true],
  ['x'.repeat(64), true],
  ['x'.repeat(65), false],
  ['', false],
  ['a b', false],
  [undefined, false],
  [7, false],
])(
  'The request id of a client is used only if it has 1 to 64 allowed characters: %j, used: %s',
  (given, isUsed) => {
    expect(requestIdOf(given) === given).toBe(isUsed);
    if (!isUsed) expect(requestIdOf(given)).toMatch(/^[0-9a-f-]{36}$/);
  },
);

test('A line of the log is a JSON object with the level and the time. If there is a current span, the line also contains the ids of the span', () => {
  const { level } = log;
  log.level = 'info';
  const lines: unknown[] = [];
  const stream: { write: (line: string) => void } = Reflect.get(log, pino.symbols.streamSym);
  const original = stream.write;
  stream.write = (line) => void lines.push(JSON.parse(line));
  log.info('first');
  const spanIds = vi.fn().mockReturnValueOnce({ trace_id: 'a', span_id: 'b' });
  enableTelemetry(Object.create({ spanIds }));
  log.info({ status: 200 }, 'request');
  log.info('third');
  stream.write = original;
  log.level = level;
  const time = expect.stringMatching(/^20.*Z$/);
  expect(lines).toEqual([
    { level: 'info', time, msg: 'first' },
    { level: 'info', time, trace_id: 'a', span_id: 'b', status: 200, msg: 'request' },
    { level: 'info', time, msg: 'third' },
  ]);
});
