import { expect, test } from 'vitest';
import { TRUST_CA, TransientError, withoutValues } from '#lib/base/errors';
import { sqlStateOf } from '#lib/base/sql-state';

/** Returns a Prisma error with this code. With `sqlState`, the cause of the error is a database error with this SQLSTATE. */
const prismaError = (code: string, sqlState?: string, cause: object = { originalCode: sqlState }) =>
  Object.assign(new Error('Key (id)=(user_1) is invalid'), {
    code,
    meta: { driverAdapterError: { cause } },
  });
const untrusted = { kind: 'TlsConnectionError', reason: 'self-signed certificate' };
const rejected = `Node.js rejects the certificate of the database: self-signed certificate. ${TRUST_CA}`;
const parameter = 'The connection pooler rejects a parameter of DATABASE_URL (08P01). Remove it';
const pooler = (originalMessage: string) =>
  prismaError('P2039', undefined, { originalCode: '08P01', originalMessage });
const busy = new TransientError('busy', 3);

test.each([
  ...['23505', '28P01', '3D000', '42P01', '42804', 'P0001'].map((state) => [
    new Error(`The database rejected the statement (${state})`),
    prismaError('P2010', state),
  ]),
  ...['P1000', 'P1003', 'P1010', 'P2021', 'P2022'].map((code) => [
    new Error(`The database rejected the statement (${code})`),
    prismaError(code),
  ]),
  [new Error('The database role lacks a privilege (42501)'), prismaError('P2010', '42501')],
  [new Error(rejected), prismaError('P1011', undefined, untrusted)],
  [new Error(rejected), prismaError('P2010', undefined, untrusted)],
  [new Error(parameter), pooler('unsupported startup parameter: statement_timeout')],
  [new TransientError('The database failed (08P01)'), pooler('query_wait_timeout')],
  [new TransientError('The database failed (53100)'), prismaError('P2010', '53100')],
  [new TransientError('The database failed (P2024)'), prismaError('P2024')],
  [new TransientError('The database failed (Error)'), new Error('Query read timeout')],
  [busy, busy],
])('An error of the database is converted to one without values of a row: %s', (converted, error) => {
  expect(withoutValues(error)).toStrictEqual(converted);
});

test('An error that is not of the database is not changed', () => {
  for (const error of [new RangeError('wrong'), new Error('The identity provider fails'), 7])
    expect(withoutValues(error)).toBe(error);
});

test.each([
  ['P2010', { driverAdapterError: { cause: { originalCode: '40P01' } } }, '40P01'],
  ['P2010', { code: '40001', message: 'could not serialize' }, '40001'],
  ['P2002', { modelName: 'User', target: ['clerk_id'] }, '23505'],
  ['P2034', { modelName: 'User' }, '40001'],
  ['P2025', { cause: 'No record was found' }, undefined],
])(
  'The SQLSTATE behind an error of Prisma 6 or 7 with the code %s and the fields %j is %s',
  (code, meta, sqlState) => {
    expect(sqlStateOf(Object.assign(new Error('failed'), { code, meta }))).toBe(sqlState);
  },
);

test('The SQLSTATE of an error of the driver is that of its cause', () => {
  expect(sqlStateOf(Object.assign(new Error('failed'), { cause: { originalCode: '40P01' } }))).toBe('40P01');
});
