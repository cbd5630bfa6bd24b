import type { Issue } from '../api/standard-schema';

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
export function valuesOf(form: FormData): Record<string, unknown> {
  const values = new Map<string, FormDataEntryValue[]>();
  for (const [name, value] of form) values.set(name, [...(values.get(name) ?? []), value]);
  return Object.fromEntries([...values].map(([name, all]) => [name, all.length === 1 ? all[0] : all]));
}

/** Returns the result for invalid input. Each field has the message of its first issue. */
export function invalidInput(issues: readonly Issue[]): ActionResult<never> {
  const fields = new Map<string, string>();
  for (const { path = [], message } of issues) {
    const name = path.map((key) => String(typeof key === 'object' ? key.key : key)).join('.');
    if (!fields.has(name)) fields.set(name, message);
  }
  const message = issues[0]?.message ?? 'Invalid input';
  return { ok: false, status: 400, message, fields: Object.fromEntries(fields) };
}
