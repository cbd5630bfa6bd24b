import * as z from 'zod/mini';
import { HttpError } from './error';

/** Ends when the body does: lib/gate.ts bounds how long a sender may take. */
async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of request.body ?? []) {
      size += chunk.byteLength;
      if (size > maxBytes) throw new HttpError(413, 'Payload too large');
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof HttpError ? error : new HttpError(400, 'The request body could not be read');
  }
  return Buffer.concat(chunks);
}

/** Strict, and without the byte order mark dropped: text and bytes correspond one to one. */
const exactUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** How much of a body is read, and what is said of one that is no text. */
export interface BodyLimits {
  readonly maxBytes: number;
  /** Answer to a body whose bytes are not UTF-8. */
  readonly notUtf8: string;
}

/**
 * The body of a request under a bound. Its `text()` differs from the request's own in two ways: it stops reading above
 * `maxBytes` (413), and it returns text that encodes to exactly the bytes received (else 400).
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

/** What JSON.parse returns, or undefined for text that is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const MAX_JSON_BYTES = 16 * 1024;

/** The request's JSON body in the shape of `schema`, or an HttpError: 400 that says what is wrong, or 413. */
export async function readJson<T>(request: Request, schema: z.core.$ZodType<T>): Promise<T> {
  const notJson = 'The request body must be JSON in UTF-8';
  const text = await limitBody(request, { maxBytes: MAX_JSON_BYTES, notUtf8: notJson }).text();
  const value = parseJson(text);
  if (value === undefined) throw new HttpError(400, notJson);
  const parsed = z.safeParse(schema, value);
  if (parsed.success) return parsed.data;
  throw new HttpError(400, parsed.error.issues[0]?.message ?? notJson);
}
