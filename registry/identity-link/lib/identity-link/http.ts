// Copied from lib/http/error.ts, lib/api/text.ts, lib/http/body.ts, lib/http/action-result.ts of identity-link.
import * as z from 'zod/mini';

/** Error that becomes a response with its `status`. The message is public, so it must not contain internal details. */
export class HttpError extends Error {
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 405 | 409 | 413 | 422 | 429,
    message: string,
  ) {
    super(message);
    this.name = 'HttpError';
  }
}

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

/**
 * Reads the whole body. Throws an HttpError 413 above `maxBytes`, and an HttpError 400 if the body cannot be read. Sets no
 * timeout, because the HTTP server limits the duration of a request.
 */
async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Uses a reader, because `for await` may not compile in an application that copies this code and uses TypeScript 5.
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    reader = request.body?.getReader();
    for (let read = await reader?.read(); read?.value; read = await reader?.read()) {
      size += read.value.byteLength;
      if (size > maxBytes) throw new HttpError(413, 'Payload too large');
      chunks.push(read.value);
    }
  } catch (error) {
    await reader?.cancel().catch(() => undefined);
    throw error instanceof HttpError ? error : new HttpError(400, 'The request body could not be read');
  }
  return Buffer.concat(chunks);
}

/** Throws for invalid UTF-8. Keeps a byte order mark, so that encoding the text again returns the same bytes. */
const exactUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export interface BodyLimits {
  readonly maxBytes: number;
  /** Message of the 400 for a body that is not valid UTF-8. */
  readonly notUtf8: string;
}

/**
 * Limits the body of a request. `text()` stops reading above `maxBytes` and throws an HttpError 413. It throws an HttpError 400
 * for a body that is not valid UTF-8 or cannot be read. Encoding the text as UTF-8 returns exactly the received bytes.
 */
export function limitBody(request: Request, { maxBytes, notUtf8 }: BodyLimits): { text(): Promise<string> } {
  return {
    async text() {
      const bytes = await readBytes(request, maxBytes);
      try {
        return exactUtf8.decode(bytes);
      } catch {
        throw new HttpError(400, notUtf8);
      }
    },
  };
}

/** Parses JSON. Returns undefined for text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const MAX_JSON_BYTES = 16 * 1024;

/**
 * Parses the JSON body of a request with a schema. Throws an HttpError 400 that describes the problem, or an HttpError 413 if
 * the body is too long.
 */
export async function readJson<T>(request: Request, schema: z.core.$ZodType<T>): Promise<T> {
  const notJson = 'The request body must be JSON in UTF-8';
  const text = await limitBody(request, { maxBytes: MAX_JSON_BYTES, notUtf8: notJson }).text();
  const value = parseJson(text);
  if (value === undefined) throw new HttpError(400, notJson);
  const parsed = z.safeParse(schema, value);
  if (parsed.success) return parsed.data;
  throw new HttpError(400, parsed.error.issues[0]?.message ?? notJson);
}

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
  for (const [name, value] of form) {
    const all = values.get(name);
    if (all) all.push(value);
    else values.set(name, [value]);
  }
  return Object.fromEntries([...values].map(([name, all]) => [name, all.length === 1 ? all[0] : all]));
}

/** Returns the result for invalid input. Each field has the message of its first issue. */
export function invalidInput({ issues }: z.core.$ZodError): ActionResult<never> {
  // Object.fromEntries() keeps only the last entry of a field, so the issues are reversed.
  const fields = Object.fromEntries(
    issues.toReversed().map(({ path, message }) => [path.join('.'), message]),
  );
  return { ok: false, status: 400, message: issues[0]?.message ?? 'Invalid input', fields };
}
