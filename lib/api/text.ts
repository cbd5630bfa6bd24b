import * as z from 'zod/mini';

/**
 * A string that PostgreSQL can store and JSON can carry, taken as it stands: not empty, at most `maxLength` characters,
 * well-formed Unicode without NUL. `name` stands in the public messages.
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
