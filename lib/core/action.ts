import { isHttpError } from './error';
import type { AuthenticatedContext } from './link';
import type { Issue, Schema } from './schema';

/** Result of a server action that `guardAction` creates. A component reads the result with `useActionState`. */
export type ActionResult<T> =
  | { readonly ok: true; readonly data: T }
  | {
      readonly ok: false;
      /** HTTP status that a route would return: 400 for invalid input, or the status of the handler's HttpError. */
      readonly status: number;
      readonly message: string;
      /** Messages by the name of the invalid field. */
      readonly fields: Readonly<Record<string, string>>;
    };

/** Returns the fields of a form as an object. A repeated field is an array. */
function valuesOf(form: FormData): Record<string, unknown> {
  const values = new Map<string, FormDataEntryValue[]>();
  for (const [name, value] of form) values.set(name, [...(values.get(name) ?? []), value]);
  return Object.fromEntries([...values].map(([name, all]) => [name, all.length === 1 ? all[0] : all]));
}

/** Returns the result for invalid input. Each field has the message of its first issue. */
function invalidInput(issues: readonly Issue[]): ActionResult<never> {
  const fields = new Map<string, string>();
  for (const { path = [], message } of issues) {
    const name = path.map((key) => String(typeof key === 'object' ? key.key : key)).join('.');
    if (!fields.has(name)) fields.set(name, message);
  }
  const message = issues[0]?.message ?? 'Invalid input';
  return { ok: false, status: 400, message, fields: Object.fromEntries(fields) };
}

/**
 * Validates the input of an action. React replaces an argument that it cannot serialize, such as a browser event, with an object
 * that throws when the schema reads it. Such an input is invalid too.
 */
async function validate<I, O>(schema: Schema<I, O>, input: unknown) {
  try {
    return await schema['~standard'].validate(input instanceof FormData ? valuesOf(input) : input);
  } catch {
    return { issues: [] };
  }
}

/** Creates the guard of server actions, whose user `requireUser` returns. */
export function createGuardAction(requireUser: () => Promise<AuthenticatedContext>) {
  /**
   * Creates a server action whose handler runs only with a verified session and valid input. Without a session, the browser is
   * redirected to the sign-in page. Takes a schema of any library that implements Standard Schema, such as zod.
   *
   * The last argument of the action is the input: the form, or any value that the schema accepts. With `useActionState`, the
   * first argument is the previous result. Invalid input and an HttpError of the handler become a result with `ok: false`. The
   * action passes every other error through, so that the page shows its error boundary. `redirect()` and `notFound()` work in the
   * handler.
   */
  return function guardAction<I, O, T>(
    schema: Schema<I, O>,
    handler: (input: O, user: AuthenticatedContext) => Promise<T>,
  ): (...args: [...state: [previous?: unknown], input: FormData | I]) => Promise<ActionResult<T>> {
    return async (...args) => {
      const user = await requireUser();
      const parsed = await validate(schema, args.at(-1));
      if (parsed.issues) return invalidInput(parsed.issues);
      try {
        return { ok: true, data: await handler(parsed.value, user) };
      } catch (error) {
        if (!isHttpError(error)) throw error;
        return { ok: false, status: error.status, message: error.message, fields: {} };
      }
    };
  };
}
