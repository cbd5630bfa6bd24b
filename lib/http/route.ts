import type { NextRequest } from 'next/server';
import type { ErrorBody } from '../api/schemas';
import { describeError } from '../errors/describe-error';
import { log, type RequestLogFields, requestIdOf, withLogFields } from '../log';
import { apiRootOf, NOT_FOUND, type Rejection } from '../routing/paths';
import { telemetry } from '../telemetry/with-span';
import { HttpError } from './error';

/** Returns a JSON response. `route` adds the headers that every response has. */
export function json(body: object, status = 200): Response {
  return Response.json(body, { status });
}

/** The second argument that Next.js passes to a route handler. */
export interface RouteContext {
  readonly params: Promise<unknown>;
}

/** Function that Next.js calls for a method of a route. */
export type RouteHandler<C extends RouteContext> = (
  request: NextRequest,
  context: C,
) => Promise<Response> | Response;

/** Converts an error of a handler to a response (docs/contract.md, 7). */
async function errorResponse(error: unknown): Promise<Response> {
  if (error instanceof HttpError) return json({ message: error.message } satisfies ErrorBody, error.status);
  // Next.js implements `redirect()` and `notFound()` with errors. Next.js itself must catch these errors.
  const { unstable_rethrow } = await import('next/navigation');
  unstable_rethrow(error);
  return json({ message: 'Internal Server Error' } satisfies ErrorBody, 500);
}

/** Returns a `server-timing` header for the developer tools of a browser, for example `cache;desc=hit`. */
function serverTiming({ cache, caller, registered }: RequestLogFields): string {
  return Object.entries({ cache, caller, registered })
    .flatMap(([name, outcome]) => (outcome ? [`${name};desc=${outcome}`] : []))
    .join(', ');
}

/**
 * Creates a route from a handler. An error of the handler becomes a JSON response. If the handler calls `redirect()` or
 * `notFound()`, Next.js creates the response. Every other response has an `x-request-id` and `cache-control: no-store`, and its
 * request has one log line.
 *
 * The log line contains `path`, the folder of the route, for example `/notes/v1/[noteId]`. Without `path`, the line contains
 * the API root instead, which is the first segment of the requested path. The other segments may be personal data. With
 * `quiet`, the log line has the level `debug` unless the handler throws. Health checks use this option.
 */
export function route<C extends RouteContext>(
  handler: RouteHandler<C>,
  path?: string,
  { quiet = false }: { readonly quiet?: boolean } = {},
): RouteHandler<C> {
  return async (request, context) => {
    const startedAt = performance.now();
    const requestId = requestIdOf(request.headers.get('x-request-id'));
    const fields: RequestLogFields = {};
    let cause: unknown;
    const returned = await withLogFields(fields, async () => {
      const result = await handler(request, context);
      if (result instanceof Response) return result;
      throw new Error('A handler returned no response');
    }).catch((error: unknown) => {
      cause = error;
      return errorResponse(error);
    });
    const response = new Response(returned.body, returned);
    response.headers.set('cache-control', 'no-store');
    response.headers.set('x-request-id', requestId);
    const timing = serverTiming(fields);
    if (timing) response.headers.set('server-timing', timing);
    const { method } = request;
    const pattern = path ?? apiRootOf(request.nextUrl.pathname);
    const ms = performance.now() - startedAt;
    const { status } = response;
    telemetry()?.recordRequest({ method, route: pattern, status, seconds: ms / 1_000, logFields: fields });
    log[quiet && cause === undefined ? 'debug' : status < 500 ? 'info' : 'error'](
      {
        requestId,
        route: `${method} ${pattern}`,
        status,
        ms: Math.round(ms),
        ...fields,
        ...(status < 500 ? {} : { error: describeError(cause) }),
      },
      'request',
    );
    return response;
  };
}

/** Creates a route that responds to every request with this rejection. */
export const rejectWith = ({ status, message, headers = {} }: Rejection): RouteHandler<RouteContext> =>
  route(() => Response.json({ message } satisfies ErrorBody, { status, headers }));

/** Route of an unknown path below an API root. */
export const notFound = rejectWith(NOT_FOUND);
