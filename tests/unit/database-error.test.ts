import { expect, test } from 'vitest';
import { TransientError } from '#lib/concurrency/retry';
import { asTransientError } from '#lib/users/database-error';

const errorOf = (error: unknown) =>
  asTransientError(Promise.reject(error)).catch((thrown: unknown) => thrown);
/** Returns a Prisma error with this code. With `sqlState`, the cause of the error is a database error with this SQLSTATE. */
const prismaError = (code: string, sqlState?: string) =>
  Object.assign(new Error('Key (id)=(user_1) is invalid'), {
    code,
    ...(sqlState ? { meta: { driverAdapterError: { cause: { originalCode: sqlState } } } } : {}),
  });

test('asTransientError() passes a result and a TransientError through', async () => {
  expect(await asTransientError(Promise.resolve(7))).toBe(7);
  const error = new TransientError('busy', 3);
  expect(await errorOf(error)).toBe(error);
});

test.each([
  ...['28P01', '3D000', '42P01', '42804'].map((state) => [state, prismaError('P2010', state)] as const),
  ...['P1000', 'P1003', 'P1010', 'P2021', 'P2022'].map((code) => [code, prismaError(code)] as const),
])(
  'asTransientError() converts a permanent database error to an error that is not retried: %s',
  async (code, error) => {
    const converted = await errorOf(error);
    expect(converted).not.toBeInstanceOf(TransientError);
    expect(converted).toEqual(new Error(`The database rejected the statement (${code})`));
  },
);

test('asTransientError() reports a missing privilege of the database role', async () => {
  const converted = await errorOf(prismaError('P2010', '42501'));
  expect(converted).not.toBeInstanceOf(TransientError);
  expect(converted).toEqual(new Error('The database role lacks a privilege (42501)'));
});

test.each([
  ['53100', prismaError('P2010', '53100')],
  ['53428', prismaError('P2010', '53428')],
  ['P2024', prismaError('P2024')],
  ['ECONNRESET', prismaError('ECONNRESET')],
  ['RangeError', new RangeError('Key (id)=(user_1) is invalid')],
])(
  'If an error is not permanent, asTransientError() replaces it with a TransientError that omits the original message: %s',
  async (code, error) => {
    const converted = await errorOf(error);
    expect(converted).toBeInstanceOf(TransientError);
    expect(converted).toMatchObject({ message: `The database failed (${code})` });
  },
);
