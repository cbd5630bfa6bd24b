import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { newId } from './ids';

/** What a handler gets of a request: everything that came from outside, still to be parsed. */
export interface ApiRequest {
  readonly method: string;
  readonly url: URL;
  /** The id in the path, where the route has one. */
  readonly id: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: IncomingMessage['headers'];
}

/** What a handler answers: JSON, or no body where `body` is undefined. */
export interface ApiResponse {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
  readonly body?: unknown;
}

/** Handlers by method and path, such as `GET /v1/users/:id`. */
export type Routes<Request = ApiRequest, Result = ApiResponse> = Readonly<
  Record<string, (request: Request) => Result>
>;

/** An answer that is an error, in the provider's codes. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly parameter?: string,
  ) {
    super(message);
  }
}

/** The 404 of a resource or a route that does not exist. */
export function notFound(what: string): ApiError {
  return new ApiError(404, 'resource_not_found', `${what} was not found.`);
}

/** The provider's form of an error, which its SDKs show beside the field that `parameter` names. */
export function errorBody({ code, message, parameter }: ApiError) {
  const meta = parameter === undefined ? {} : { param_name: parameter };
  return { errors: [{ code, message, long_message: message, meta }], clerk_trace_id: newId('trace') };
}

/** The handler of a request and the id in its path; undefined if no route fits. */
export function findRoute<H>(
  routes: Readonly<Record<string, H>>,
  method: string,
  pathname: string,
): { handler: H; id: string } | undefined {
  const parts = pathname.split('/');
  for (const [route, handler] of Object.entries(routes)) {
    const [routeMethod, path = ''] = route.split(' ');
    const pattern = path.split('/');
    if (routeMethod !== method || pattern.length !== parts.length) continue;
    if (!pattern.every((part, index) => part === ':id' || part === parts[index])) continue;
    return { handler, id: parts[pattern.indexOf(':id')] ?? '' };
  }
  return undefined;
}

/** The value that a schema makes of a body or a query. Throws the provider's error for the first fault. */
export function parse<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  if (issue?.code === 'unrecognized_keys') {
    const name = issue.keys[0] ?? '';
    throw new ApiError(422, 'form_param_unknown', `${name} is not a valid parameter for this request.`, name);
  }
  const name = String(issue?.path[0] ?? 'body');
  if (z.record(z.string(), z.unknown()).safeParse(input).data?.[name] === undefined) {
    throw new ApiError(422, 'form_param_missing', `${name} must be included.`, name);
  }
  throw new ApiError(422, 'form_param_format_invalid', `${name} is invalid: ${issue?.message}`, name);
}

const BODY_LIMIT_BYTES = 64 * 1024;

/**
 * The fields of a JSON or form body, none for an empty one. Throws a 413 above 64 KiB, and a 400 for a body that
 * is no JSON object or did not arrive whole.
 */
export async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    // The connection must outlive a body that is given up, or the answer would not reach the sender.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      const bytes = Buffer.from(chunk);
      length += bytes.length;
      if (length > BODY_LIMIT_BYTES) break;
      chunks.push(bytes);
    }
  } catch {
    throw new ApiError(400, 'request_body_invalid', 'The body did not arrive whole.');
  }
  if (length > BODY_LIMIT_BYTES) throw new ApiError(413, 'request_body_too_large', 'The body is too large.');
  const text = Buffer.concat(chunks).toString();
  if (text === '') return {};
  if (!request.headers['content-type']?.includes('json'))
    return Object.fromEntries(new URLSearchParams(text));
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text));
  } catch {
    throw new ApiError(400, 'request_body_invalid', 'The body is no JSON object.');
  }
}
