import type * as z from 'zod/mini';
import type { AuthenticatedContext } from './api/schemas';
import { describeError } from './errors/describe-error';
import { type ActionResult, invalidInput, valuesOf } from './http/action-result';
import { HttpError } from './http/error';
import { rateLimitedWarning } from './log';
import { requireUser } from './user';

export type { ActionResult };

const warn = rateLimitedWarning('the schema of a server action failed');

/**
 * Parses the input of an action. Returns undefined if the schema throws. React replaces an argument that cannot be serialized,
 * such as a browser event, with an object whose properties throw when the schema reads them.
 */
function parse<S extends z.ZodMiniType>(schema: S, input: unknown) {
  try {
    return schema.safeParse(input instanceof FormData ? valuesOf(input) : input);
  } catch (error) {
    warn({ error: describeError(error) });
    return undefined;
  }
}

/**
 * Creates a server action whose handler runs only with a verified session and valid input. Without a session, the browser is
 * redirected to the sign-in page.
 *
 * The last argument of the action is the input: the form, or any value that the schema accepts. Before it, `useActionState`
 * passes the previous result. Invalid input and an HttpError of the handler become a result with `ok: false`. The action
 * passes every other error through, so that the page shows its error boundary. `redirect()` and `notFound()` work in the
 * handler.
 */
export function guardAction<S extends z.ZodMiniType, T>(
  schema: S,
  handler: (input: z.output<S>, context: AuthenticatedContext) => Promise<T>,
): (...args: [...state: [previous?: unknown], input: FormData | z.input<S>]) => Promise<ActionResult<T>> {
  return async (...args) => {
    const context = await requireUser();
    const parsed = parse(schema, args.at(-1));
    if (parsed === undefined) return { ok: false, status: 400, message: 'Invalid input', fields: {} };
    if (!parsed.success) return invalidInput(parsed.error);
    try {
      return { ok: true, data: await handler(parsed.data, context) };
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      return { ok: false, status: error.status, message: error.message, fields: {} };
    }
  };
}
