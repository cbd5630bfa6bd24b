import pino from 'pino';
import { expect, test, vi } from 'vitest';
import { InvalidEnvironmentError } from '#lib/env';
import { describeError } from '#lib/errors/describe-error';
import {
  addLogFields,
  enableTelemetry,
  log,
  type RequestLogFields,
  rateLimitedWarning,
  requestIdOf,
  withLogFields,
} from '#lib/log';

// describeError() returns the fields of an error for the log. It omits texts that may contain personal data or keys.
test('describeError() returns the name and the code of an error. It returns the message only if the message consists of words', () => {
  const cause = Object.assign(new Error('duplicate key value: Key (id)=(user_1) exists'), { code: '23505' });
  const described = describeError(new Error('timeout exceeded when trying to connect', { cause }));
  expect(described).toMatchObject({
    name: 'Error',
    message: 'timeout exceeded when trying to connect',
    cause: { name: 'Error', code: '23505' },
  });
  expect(JSON.stringify(described)).not.toContain('user_1');
});

test.each(['connect to ada@example.com', 'key sk_test_1', 'body was {"a":1}', 'postgresql://u:p@h/d'])(
  'describeError() omits a message that may contain a value: %s',
  (message) => {
    expect(JSON.stringify(describeError(new Error(message)))).not.toContain(message);
  },
);

test('describeError() returns the message of an InvalidEnvironmentError, which names the missing variables', () => {
  const error = new InvalidEnvironmentError(['DATABASE_URL is missing']);
  expect(describeError(error).message).toContain('DATABASE_URL is missing');
});

test('describeError() returns any message if NODE_ENV is development', () => {
  vi.stubEnv('NODE_ENV', 'development');
  const message = 'The table `public.notes` does not exist';
  expect(describeError(new Error(message)).message).toBe(message);
  vi.unstubAllEnvs();
});

test('describeError() returns only the type of a value that is not an error, and limits the depth of circular causes', () => {
  expect(describeError('sk_test_1')).toEqual({ name: 'string' });
  const error = new Error('round');
  error.cause = error;
  expect(JSON.stringify(describeError(error)).match(/"name"/g)?.length).toBeLessThan(10);
});

test('Log fields belong to the current request and do not mix between concurrent requests', async () => {
  const fields: RequestLogFields[] = [{}, {}];
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

test('describeError() does not mistake a line of the message for a stack frame', () => {
  const described = describeError(new Error('x\n    at alice@example.com sk_test_abc'));
  expect(JSON.stringify(described)).not.toMatch(/alice|sk_test/);
  expect(described.frames?.length).toBeGreaterThan(0);
});

test('describeError() returns only the lines of a stack that are stack frames', () => {
  const error = new Error('x');
  error.stack = 'Error: x\nThe caller was at alice@example.com\n    at f (a.js:1:1)';
  expect(describeError(error).frames).toEqual(['at f (a.js:1:1)']);
});

test('The stack of an error contains the original message even if the name or the message has changed. describeError() does not return lines of that message as frames', () => {
  const renamed = new Error('x\n    at alice@example.com (sk_test_abc:1:1)');
  expect(renamed.stack).toBeDefined();
  renamed.name = 'Renamed';
  expect(JSON.stringify(describeError(renamed))).not.toMatch(/alice|sk_test/);
  expect(describeError(renamed).frames?.length).toBeGreaterThan(0);
  renamed.message = 'another one';
  expect(JSON.stringify(describeError(renamed))).not.toMatch(/alice|sk_test/);
});

test('describeError() omits a code that is not a single word', () => {
  const error = Object.assign(new Error('x'), { code: 'alice@example.com' });
  expect(JSON.stringify(describeError(error))).not.toContain('alice');
});

test('describeError() adds the SQLSTATE of a Prisma error if the SQLSTATE is valid', () => {
  const prismaError = (originalCode: unknown) =>
    Object.assign(new Error('Raw query failed'), {
      code: 'P2010',
      meta: { driverAdapterError: { cause: { originalCode } } },
    });
  expect(describeError(prismaError('42P10'))).toMatchObject({ code: 'P2010', sqlState: '42P10' });
  for (const other of ['alice@example.com', '42p10', '42P10 alice@example.com', undefined]) {
    expect(describeError(prismaError(other))).not.toHaveProperty('sqlState');
  }
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
  ['a\n', false],
  ['!a', false],
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

test('describeError() returns up to six frames and up to three causes, and a code of up to 40 characters', () => {
  const error = Object.assign(new Error('outer'), { code: 'C'.repeat(40) });
  error.stack = `Error: outer\n${'    at f (a.js:1:1)\n'.repeat(9)}`;
  expect(describeError(error)).toEqual({
    name: 'Error',
    code: 'C'.repeat(40),
    message: 'outer',
    frames: Array.from({ length: 6 }, () => 'at f (a.js:1:1)'),
  });
  expect(describeError(Object.assign(new Error('x'), { code: 'C'.repeat(41) }))).not.toHaveProperty('code');
  const chain = [1, 2, 3, 4].reduce((cause) => new Error('x', { cause }), new Error('root'));
  const { cause } = describeError(chain);
  expect(cause?.cause?.cause).toMatchObject({ name: 'Error' });
  expect(cause?.cause?.cause).not.toHaveProperty('cause');
});

test('describeError() returns a message only if the message consists of 1 to 100 letters, spaces, commas, periods, apostrophes or hyphens', () => {
  for (const message of ['x'.repeat(100), "Can't connect, try again."])
    expect(describeError(new Error(message)).message).toBe(message);
  for (const message of ['x'.repeat(101), '', 'a=b', '7 rows', 'rows 7'])
    expect(describeError(new Error(message))).not.toHaveProperty('message');
});

test('describeError() omits the frames of an error without a stack', () => {
  const error = new Error('x');
  Reflect.deleteProperty(error, 'stack');
  expect(describeError(error)).toEqual({ name: 'Error', message: 'x' });
});
