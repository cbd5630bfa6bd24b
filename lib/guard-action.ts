import type * as z from 'zod/mini';
import type { AuthenticatedContext } from './api/schemas';
import { describeError } from './errors/describe-error';
import { HttpError } from './http/error';
import { rateLimitedWarning } from './log';
import { requireUser } from './user';

/** Result of a guarded server action, for `useActionState`. */
export type ActionResult<T> =
  | { readonly ok: true; readonly data: T }
  | {
      readonly ok: false;
      /** HTTP status that a route would return: 400 for invalid input, otherwise the status of the HttpError. */
      readonly status: number;
      readonly message: string;
      /** Messages by the name of the invalid field. */
      readonly fields: Readonly<Record<string, string>>;
    };

/** Returns the fields of a form as an object. A repeated field is an array. */
function valuesOf(form: FormData): Record<string, unknown> {
  const values = new Map<string, FormDataEntryValue[]>();
  for (const [name, value] of form) {
    const all = values.get(name);
    if (all) all.push(value);
    else values.set(name, [value]);
  }
  return Object.fromEntries([...values].map(([name, all]) => [name, all.length === 1 ? all[0] : all]));
}

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

/** Returns the result for invalid input. Each field has the message of its first issue. */
function invalid({ issues }: z.core.$ZodError): ActionResult<never> {
  // Object.fromEntries() keeps only the last entry of a field, so the issues are reversed.
  const fields = Object.fromEntries(
    issues.toReversed().map(({ path, message }) => [path.join('.'), message]),
  );
  return { ok: false, status: 400, message: issues[0]?.message ?? 'Invalid input', fields };
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
    if (!parsed.success) return invalid(parsed.error);
    try {
      return { ok: true, data: await handler(parsed.data, context) };
    } catch (error) {
      if (!(error instanceof HttpError)) throw error;
      return { ok: false, status: error.status, message: error.message, fields: {} };
    }
  };
}
