import { randomUUID } from 'node:crypto';
import { isHttpError } from './error';
import type { Observer, RequestFields } from './ports';

const SAFE_REQUEST_ID = /^[A-Za-z0-9_.:-]{1,64}$/;

/** Returns the id of a request: the client's `x-request-id` if it matches SAFE_REQUEST_ID, otherwise a new UUID. */
export const requestIdOf = (header: unknown): string =>
  typeof header === 'string' && SAFE_REQUEST_ID.test(header) ? header : randomUUID();

/** Returns a JSON response. `route` adds the headers that every response has. */
export const json = (body: object, status = 200): Response => Response.json(body, { status });

/** The second argument that Next.js passes to a route handler. */
export interface RouteContext {
  readonly params: Promise<unknown>;
}

/** Function that Next.js calls for a method of a route. */
export type RouteHandler<C extends RouteContext, R extends Request = Request> = (
  request: R,
  context: C,
) => Promise<Response> | Response;

/** Returns a `server-timing` header for the developer tools of a browser, for example `cache;desc=hit`. */
const serverTiming = ({ cache, caller, registered }: RequestFields): string =>
  Object.entries({ cache, caller, registered })
    .flatMap(([name, outcome]) => (outcome ? [`${name};desc=${outcome}`] : []))
    .join(', ');

/** Returns the path with the names of its parameters, because their values may be personal data: `/notes/v1/[noteId]`. */
async function patternOf(pathname: string, params: Promise<unknown>): Promise<string> {
  const names = new Map<string, string>();
  for (const [name, values] of Object.entries((await params) ?? {}))
    for (const value of [values].flat()) names.set(String(value), `[${name}]`);
  if (names.size === 0) return pathname;
  return pathname
    .split('/')
    .map((segment) => names.get(decodeURIComponent(segment)) ?? names.get(segment) ?? segment)
    .join('/');
}

/** Creates `route`. `rethrow` throws an error that the framework must catch, such as that of `redirect()` in Next.js. */
export function createRoute<R extends Request>(
  observer: Observer,
  rethrow?: (error: unknown) => Promise<unknown>,
) {
  /** Converts an error of a handler to a response (docs/contract.md, 7). */
  async function errorResponse(error: unknown): Promise<Response> {
    if (isHttpError(error))
      return Response.json({ message: error.message }, { status: error.status, headers: error.headers });
    await rethrow?.(error);
    return json({ message: 'Internal Server Error' }, 500);
  }

  /**
   * Creates a route from a handler. An error of the handler becomes a JSON response. If the handler calls `redirect()` or
   * `notFound()`, Next.js creates the response. Every other response has an `x-request-id` and `cache-control: no-store`, a 401 has
   * a challenge (RFC 6750, 3), and its request has one log line with the pattern of the path, or with `name` instead. With `quiet`,
   * this line has the level `debug` unless the handler throws.
   */
  return function route<C extends RouteContext>(
    handler: RouteHandler<C, R>,
    { quiet = false, name }: { readonly quiet?: boolean; readonly name?: string } = {},
  ): RouteHandler<C, R> {
    async function handle(request: R, context: C, fields: RequestFields): Promise<Response> {
      const startedAt = performance.now();
      let failure: unknown;
      let response: Response;
      try {
        const returned = await handler(request, context);
        // The headers of the returned response may be immutable.
        response = new Response(returned.body, returned);
      } catch (error) {
        failure = error;
        response = await errorResponse(error);
      }
      const requestId = requestIdOf(request.headers.get('x-request-id'));
      response.headers.set('cache-control', 'no-store');
      response.headers.set('x-request-id', requestId);
      if (response.status === 401 && !response.headers.has('www-authenticate'))
        response.headers.set('www-authenticate', 'Bearer');
      const timing = serverTiming(fields);
      if (timing) response.headers.set('server-timing', timing);
      observer.handled({
        requestId,
        method: request.method,
        route: name ?? (await patternOf(new URL(request.url).pathname, context.params)),
        status: response.status,
        ms: performance.now() - startedAt,
        fields,
        error: failure,
        quiet,
      });
      return response;
    }

    return (request, context) => {
      const fields: RequestFields = {};
      return observer.run(fields, request.headers, () => handle(request, context, fields));
    };
  };
}
