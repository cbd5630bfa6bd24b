import * as z from 'zod/mini';

/**
 * Schema of a string that PostgreSQL and JSON can represent: well-formed Unicode without NUL. `z.minLength` and `z.maxLength`
 * count code points, not UTF-16 units. Does not change the string. `name` is the field's name in public error messages.
 */
export const text = (name: string, maxLength: number) =>
  z.string({ error: `${name} must be a string` }).check(
    z.minLength(1, `${name} must not be empty`),
    z.maxLength(maxLength, `${name} must have at most ${maxLength} characters`),
    z.refine(
      (value) => value.isWellFormed() && !value.includes('\0'),
      `${name} must be well-formed Unicode without NUL`,
    ),
  );
