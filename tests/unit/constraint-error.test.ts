import { expect, test } from 'vitest';
import { withConstraintErrors } from '#lib/storage/constraint-error';

const failing = (code: unknown) => Promise.reject(Object.assign(new Error('The query failed'), { code }));

test.each([
  ['P2002', 409, 'Already exists'],
  ['P2003', 404, 'Not found'],
  ['P2025', 404, 'Not found'],
])(
  'The Prisma error %s becomes an HttpError with status %d and the message "%s"',
  async (code, status, message) => {
    await expect(withConstraintErrors(failing(code))).rejects.toMatchObject({
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
