import { HttpError, isHttpError } from './error';
import type { Schema } from './schema';
import { parseJson } from './values';

/**
 * Reads the whole body. Throws an HttpError 413 above `maxBytes`, and 400 if it cannot be read. The HTTP server limits the time.
 */
async function readBytes({ body }: Pick<Body, 'body'>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    reader = body?.getReader();
    for (let read = await reader?.read(); read?.value; read = await reader?.read()) {
      size += read.value.byteLength;
      if (size > maxBytes) throw new HttpError(413, 'Payload too large');
      chunks.push(read.value);
    }
  } catch (error) {
    await reader?.cancel().catch(() => undefined);
    throw isHttpError(error) ? error : new HttpError(400, 'The request body could not be read');
  }
  return Buffer.concat(chunks);
}

/** Throws for invalid UTF-8. Keeps a byte order mark, so that encoding the text again returns the same bytes. */
const exactUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Limits of the body that `limitBody` reads. */
export interface BodyLimits {
  readonly maxBytes: number;
  /** Message of the 400 for a body that is not valid UTF-8. */
  readonly notUtf8: string;
}

/**
 * Limits the body of a request or a response. `text()` stops reading above `maxBytes` and throws an HttpError 413. It throws an
 * HttpError 400 for a body that is not valid UTF-8 or cannot be read. Encoding the text as UTF-8 returns the received bytes.
 */
export function limitBody(message: Pick<Body, 'body'>, limits: BodyLimits): { text(): Promise<string> } {
  const { maxBytes, notUtf8 } = limits;
  return {
    async text() {
      const bytes = await readBytes(message, maxBytes);
      try {
        return exactUtf8.decode(bytes);
      } catch {
        throw new HttpError(400, notUtf8);
      }
    },
  };
}

const MAX_JSON_BYTES = 16 * 1024;
const NOT_JSON = 'The request body must be JSON in UTF-8';

/** Parses the JSON body with a schema. Throws an HttpError 400 that describes the problem, or 413 if it is too long. */
export async function readJson<I, O>(request: Request, schema: Schema<I, O>): Promise<O> {
  const text = await limitBody(request, { maxBytes: MAX_JSON_BYTES, notUtf8: NOT_JSON }).text();
  const value = parseJson(text);
  if (value === undefined) throw new HttpError(400, NOT_JSON);
  const parsed = await schema['~standard'].validate(value);
  if (parsed.issues) throw new HttpError(400, parsed.issues[0]?.message ?? NOT_JSON);
  return parsed.value;
}
