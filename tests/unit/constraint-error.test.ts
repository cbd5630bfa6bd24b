import { expect, test } from 'vitest';
import { withConstraintErrors } from '#lib/storage/constraint-error';

const failing = (code: unknown, originalCode?: string) =>
  Promise.reject(
    Object.assign(new Error('The query failed'), {
      code,
      meta: { driverAdapterError: { cause: { originalCode } } },
    }),
  );

test.each([
  [409, 'Already exists', 'P2002', '23505'],
  [409, 'Already exists', 'P2010', '23505'],
  [409, 'Already exists', 'P2010', '23P01'],
  [404, 'Not found', 'P2003', undefined],
  [404, 'Not found', 'P2010', '23503'],
  [404, 'Not found', 'P2025', undefined],
])(
  'withConstraintErrors() rejects with an HttpError %d "%s" for the Prisma error %s (SQLSTATE %s)',
  async (status, message, code, sqlState) => {
    await expect(withConstraintErrors(failing(code, sqlState))).rejects.toMatchObject({
      name: 'HttpError',
      status,
      message,
    });
  },
);

test('The caller of withConstraintErrors() can set the messages of the 409 and the 404', async () => {
  const messages = { conflict: 'Already a member', notFound: 'No such project' };
  await expect(withConstraintErrors(failing('P2002'), messages)).rejects.toThrow('Already a member');
  await expect(withConstraintErrors(failing('P2003'), messages)).rejects.toThrow('No such project');
});

test.each(['P1001', 'P2010', '23505', undefined, 7])(
  'withConstraintErrors() passes an error with the code %s through',
  async (code) => {
    await expect(withConstraintErrors(failing(code))).rejects.toMatchObject({ name: 'Error', code });
  },
);

test('withConstraintErrors() returns the result of a query', async () => {
  expect(await withConstraintErrors(Promise.resolve('row'))).toBe('row');
});
