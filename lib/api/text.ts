import * as z from 'zod/mini';
import { textProblem } from '../core/values';

/**
 * Schema of a string that PostgreSQL and JSON can represent: well-formed Unicode without NUL. `z.minLength` and `z.maxLength`
 * count code points, not UTF-16 units. Does not change the string. `name` is the field's name in public error messages.
 */
export function text(name: string, maxLength: number) {
  const error = ({ input }: { readonly input?: unknown }) => `${name} ${textProblem(input, maxLength)}`;
  return z.string({ error }).check(
    z.minLength(1, { error }),
    z.maxLength(maxLength, { error }),
    z.refine((value) => textProblem(value, maxLength) === undefined, { error }),
  );
}
