import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { sqlStateOf } from '#lib/base/sql-state';
import { withTimeout } from '#lib/core/async';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('Work that settles in time keeps its result or error, and leaves no timer', async () => {
  expect(await withTimeout(1_000, Promise.resolve('done'))).toBe('done');
  await expect(withTimeout(1_000, Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(vi.getTimerCount()).toBe(0);
});

test('Work that does not settle in time fails with a TimeoutError', async () => {
  const rejected = vi.fn();
  const waiting = withTimeout(1_000, new Promise(() => undefined)).catch(rejected);
  await vi.advanceTimersByTimeAsync(999);
  expect(rejected).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await waiting;
  expect(rejected).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ name: 'TimeoutError', message: 'Timed out' }),
  );
});

const driverError = (originalCode: string) => ({ name: 'DriverAdapterError', cause: { originalCode } });
test.each([
  [
    'Prisma 7, raw or generated statement',
    { code: 'P2010', meta: { driverAdapterError: driverError('40P01') } },
    '40P01',
  ],
  ['Prisma 7, error without a code of Prisma', driverError('40P01'), '40P01'],
  [
    'Prisma 6, raw statement',
    { code: 'P2010', meta: { code: '40001', message: 'could not serialize' } },
    '40001',
  ],
  ['Prisma 6, unique key', { code: 'P2002', meta: { modelName: 'User', target: ['clerk_id'] } }, '23505'],
  ['Prisma 6, lost race', { code: 'P2034', meta: { modelName: 'User' } }, '40001'],
  ['no database error', { code: 'P2025', meta: { cause: 'No record was found' } }, undefined],
])('The SQLSTATE of a database error is found: %s', (_name, error, sqlState) => {
  expect(sqlStateOf(Object.assign(new Error('failed'), error))).toBe(sqlState);
});
