import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { type Context, Hono, type HonoRequest, type MiddlewareHandler } from 'hono';
import { z } from 'zod';
import { errorCode } from './errors';
import { ApiError, notFound, parameterError, SHORT_MESSAGES } from './instance/api-error';
import { newId } from './instance/ids';
import type { UploadedFile } from './instance/images';

/** Host of this machine. Any port is valid, because port forwarding may change the port. */
const LOOPBACK_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;

/** A request as a handler receives it. The handler validates the fields of the body and of the query. */
export interface ApiRequest {
  readonly method: string;
  readonly url: URL;
  /** The id in the path, or an empty string if the route does not have one. */
  readonly id: string;
  /** The second id in the path, or an empty string if the route does not have one. */
  readonly otherId: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The file of a form. */
  readonly file?: UploadedFile | undefined;
  readonly headers: Headers;
}

/** The response of a handler: JSON, a text with its own content type, or no body if `body` is undefined. */
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

/** Returns the body of an error in Clerk's format. Clerk's components show the message beside the form field `parameter`. */
export function errorBody({ code, message: long_message, parameter, meta: more }: ApiError) {
  const meta = { param_name: parameter, ...more };
  const error = { code, message: SHORT_MESSAGES.get(code) ?? long_message, long_message, meta };
  return { errors: [error], clerk_trace_id: newId('trace') };
}

/** Returns true if the origin is on this machine. Subdomains of `localhost` are, because resolvers reserve them (RFC 6761). */
export function isLoopback(origin: string): boolean {
  const { hostname = '' } = URL.canParse(origin) ? new URL(origin) : {};
  return LOOPBACK_HOST.test(hostname) || hostname.endsWith('.localhost');
}

/**
 * Throws a 403 unless the `Host` header names this machine. This prevents DNS rebinding: an attacker makes the domain
 * of a page resolve to 127.0.0.1. A request from this page has the domain in its `Host` header, so the request gets the 403.
 */
export const requireLoopbackHost: MiddlewareHandler = ({ req }, next) => {
  if (LOOPBACK_HOST.test(req.header('host') ?? '')) return next();
  throw new ApiError(
    403,
    'host_refused',
    'The emulator accepts only requests to localhost, 127.0.0.1 and [::1].',
  );
};

/** Parses a body or a query. Throws Clerk's error for the first invalid field. */
export function parse<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  if (issue?.code === 'unrecognized_keys') {
    throw parameterError('unknown', issue.keys[0] ?? '');
  }
  const name = String(issue?.path[0] ?? 'body');
  if (z.record(z.string(), z.unknown()).safeParse(input).data?.[name] === undefined) {
    throw parameterError('missing', name);
  }
  throw new ApiError(422, 'form_param_format_invalid', `${name} is invalid: ${issue?.message}`, name);
}

const Page = z.object({
  limit: z.coerce.number().int().pipe(z.number().min(1).max(500).catch(10)).default(10),
  offset: z.coerce.number().int().min(0).default(0),
});

/** Returns the requested page of a list and the number of all rows. As at Clerk, a limit below 1 or above 500 means 10. */
export function pageOf<Row>(
  { searchParams }: URL,
  rows: readonly Row[],
  format: (row: Row) => unknown = (row) => row,
) {
  const { limit, offset } = parse(Page, Object.fromEntries(searchParams));
  return { data: rows.slice(offset, offset + limit).map(format), total_count: rows.length };
}

/** Returns the same routes, with `wrap` applied to each handler. */
export function wrapHandlers<From, To>(
  routes: Readonly<Record<string, From>>,
  wrap: (handler: From, route: string) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(routes).map(([route, handler]) => [route, wrap(handler, route)]));
}

/** Serves the requests that `accepts` selects. A handler is synchronous, so no other request changes the store meanwhile. */
export function serve(routes: Routes, accepts: (headers: Headers) => boolean = () => true): Hono {
  const app = new Hono();
  for (const [route, handler] of Object.entries(routes)) {
    const [method = '', path = ''] = route.split(' ');
    app.on(method, path, async (context, next) => {
      if (!accepts(context.req.raw.headers)) return next();
      return respond(handler(await readRequest(context)));
    });
  }
  return app;
}

/** Creates an HTTP server. `formatError` returns the response body for an ApiError. Any other error causes a 500. */
export function createHttpServer(app: Hono, formatError: (error: ApiError) => unknown): Server {
  app.all('*', ({ req }) => {
    throw notFound(`${req.method} ${req.path}`);
  });
  app.onError((error) => {
    if (error instanceof ApiError) return respond({ status: error.status, body: formatError(error) });
    // The client has closed the connection before its whole body arrived.
    if (errorCode(error) === 'ECONNRESET') return respond({ status: 400 });
    console.error('The emulator failed:', error);
    const message = 'The emulator failed. See its output for the cause.';
    return respond({ status: 500, body: formatError(new ApiError(500, 'internal_clerk_error', message)) });
  });
  return createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
}

/** The Backend SDK parses a response as JSON only if the content type is exactly this value. */
const JSON_TYPE = 'application/json';

/** Converts the response of a handler to a `Response` of the Fetch API. */
export function respond({ status = 200, headers, cookies = [], body }: ApiResponse): Response {
  const all = new Headers({ 'cache-control': 'no-store', 'content-type': JSON_TYPE, ...headers });
  for (const cookie of cookies) all.append('set-cookie', cookie);
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return new Response(text ?? null, { status, headers: all });
}

/** Returns parameters by name. The value is an array if the name occurs several times. */
export function readParameters(parameters: URLSearchParams): Record<string, string | string[]> {
  const read = (name: string) => {
    const [first = '', ...more] = parameters.getAll(name);
    return more.length === 0 ? first : [first, ...more];
  };
  return Object.fromEntries([...parameters.keys()].map((name) => [name, read(name)]));
}

async function readRequest({ req }: Context): Promise<ApiRequest> {
  const { body, file } = await readFields(req);
  return {
    method: req.method,
    url: new URL(req.url),
    id: req.param('id') ?? '',
    otherId: req.param('otherId') ?? '',
    body,
    file,
    headers: req.raw.headers,
  };
}

const MAX_BODY_BYTES = 64 * 1024;
/** Limit of Clerk's for a picture. */
const MAX_FILE_BYTES = 10 * 1024 * 1024;

/** Returns true for a content type that a page of another origin can send only after a CORS preflight. */
export const isJson = (type: string): boolean => /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type);
/** A JSON body. An array is the field `items`. */
const JsonBody = z.union([
  z.record(z.string(), z.unknown()),
  z.array(z.unknown()).transform((items) => ({ items })),
]);

/**
 * Returns the fields of a JSON object, a JSON array or a form, and the file of a form. clerk-js sends a file as a data URL, too.
 * Throws a 400 for another body, and a 413 above the limit, without reading the body if its `Content-Length` says so.
 */
async function readFields(req: HonoRequest): Promise<Pick<ApiRequest, 'body' | 'file'>> {
  const type = req.header('content-type') ?? '';
  const limit = /^(multipart\/form-data|application\/octet-stream)\b/i.test(type)
    ? MAX_FILE_BYTES
    : MAX_BODY_BYTES;
  if (Number(req.header('content-length') ?? 0) > limit || (await req.arrayBuffer()).byteLength > limit)
    throw new ApiError(413, 'request_body_too_large', 'The body is too large.');
  if (/^application\/octet-stream\b/i.test(type)) {
    const [, mime = '', base64 = ''] = /^data:([^;,]*);base64,(.*)$/s.exec(await req.text()) ?? [];
    return { body: {}, file: { type: mime, base64 } };
  }
  try {
    if (isJson(type)) return { body: JsonBody.parse(JSON.parse((await req.text()) || '{}')) };
    const form = Object.entries(await req.parseBody({ all: true }));
    const file = form.map(([, value]) => value).find((value) => value instanceof File);
    return {
      body: Object.fromEntries(form.filter(([, value]) => !(value instanceof File))),
      file: file && { type: file.type, base64: Buffer.from(await file.arrayBuffer()).toString('base64') },
    };
  } catch {
    throw new ApiError(400, 'request_body_invalid', 'The body is not a JSON object or a form.');
  }
}

/** Listens on 127.0.0.1 and resolves with the port. Port 0 selects any free port. Rejects if the port is in use. */
export async function listen(server: Server, port = 0): Promise<number> {
  await once(server.listen(port, '127.0.0.1'), 'listening').catch((error: unknown) => {
    throw errorCode(error) === 'EADDRINUSE' ? new Error(`Port ${port} is in use.`) : error;
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no TCP port.');
  return address.port;
}

/** Closes all connections and resolves when the server has stopped listening. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
