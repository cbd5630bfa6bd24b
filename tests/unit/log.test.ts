import { expect, test, vi } from 'vitest';
import { InvalidEnvironmentError } from '#lib/env';
import { describeError } from '#lib/errors/describe-error';
import { addLogFields, type RequestLogFields, withLogFields } from '#lib/log';

test('describeError() returns the name, code and frames, and the message only if it contains no value', () => {
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

test('describeError() names the missing variables of an environment', () => {
  const error = new InvalidEnvironmentError(['DATABASE_URL is missing']);
  expect(describeError(error).message).toContain('DATABASE_URL is missing');
});

test('describeError() keeps every message under `next dev`', () => {
  vi.stubEnv('NODE_ENV', 'development');
  const message = 'The table `public.notes` does not exist';
  expect(describeError(new Error(message)).message).toBe(message);
  vi.unstubAllEnvs();
});

test('describeError() returns only the type of a value that is not an error, and stops at circular causes', () => {
  expect(describeError('sk_test_1')).toEqual({ name: 'string' });
  const error = new Error('round');
  error.cause = error;
  expect(JSON.stringify(describeError(error)).match(/"name"/g)?.length).toBeLessThan(10);
});

test('Log fields belong to the current request and do not mix between concurrent requests', async () => {
  const facts: RequestLogFields[] = [{}, {}];
  await Promise.all(
    facts.map((own, index) =>
      withLogFields(own, async () => {
        await Promise.resolve();
        addLogFields({ messageId: `msg_${index}` });
      }),
    ),
  );
  expect(facts).toEqual([{ messageId: 'msg_0' }, { messageId: 'msg_1' }]);
  expect(() => addLogFields({ cache: 'hit' })).not.toThrow();
});

test('describeError() does not mistake a line of the message for a stack frame', () => {
  const described = describeError(new Error('x\n    at alice@example.com sk_test_abc'));
  expect(JSON.stringify(described)).not.toMatch(/alice|sk_test/);
  expect(described.frames?.length).toBeGreaterThan(0);
});

test('describeError() omits the message even if the name or message changed after the stack was read', () => {
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

test('describeError() adds the SQLSTATE of a Prisma error if it is valid', () => {
  const prismaError = (originalCode: unknown) =>
    Object.assign(new Error('Raw query failed'), {
      code: 'P2010',
      meta: { driverAdapterError: { cause: { originalCode } } },
    });
  expect(describeError(prismaError('42P10'))).toMatchObject({ code: 'P2010', sqlState: '42P10' });
  for (const other of ['alice@example.com', '42p10', undefined]) {
    expect(describeError(prismaError(other))).not.toHaveProperty('sqlState');
  }
});
