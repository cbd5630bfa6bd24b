import type { NextRequest } from 'next/server';
import type { ErrorBody } from '../api/schemas';
import { trackInFlight } from '../concurrency/shutdown';
import { describeError } from '../errors/describe-error';
import { log, type RequestLogFields, requestIdOf, withLogFields } from '../log';
import { apiRootOf } from '../routing/paths';
import { telemetry } from '../telemetry/with-span';

import { HttpError } from './error';

/** A JSON answer. `route` adds the headers that every answer has. */
export function json(body: object, status = 200): Response {
  return Response.json(body, { status });
}

/** The second argument that Next.js passes to a route handler. */
export interface RouteContext {
  readonly params: Promise<unknown>;
}

/** What Next.js calls for a method of a route. */
export type RouteHandler<S extends RouteContext> = (
  request: NextRequest,
  segment: S,
) => Promise<Response> | Response;

/** The one place where a failure becomes an answer (contract 7). */
async function failure(error: unknown): Promise<Response> {
  if (error instanceof HttpError) return json({ message: error.message } satisfies ErrorBody, error.status);
  // `redirect()` and `notFound()` of Next.js are thrown, and are no failures.
  const { unstable_rethrow } = await import('next/navigation');
  unstable_rethrow(error);
  return json({ message: 'Internal Server Error' } satisfies ErrorBody, 500);
}

/** How the answer came about, for the caller's own developer tools: `server-timing: cache;desc=hit`. */
function serverTiming({ cache, caller, registered }: RequestLogFields): string {
  return Object.entries({ cache, caller, registered })
    .flatMap(([name, outcome]) => (outcome ? [`${name};desc=${outcome}`] : []))
    .join(', ');
}

/**
 * Makes a route of a handler: whatever the handler throws is answered as contract 7 says, every answer has an
 * `x-request-id` and is not cached, and one log line tells how it went.
 *
 * The line names the route by `path`, which is its folder's: `/notes/v1/[noteId]`. Without it only the root is named, for
 * a segment may be personal. What is asked all the time, such as a probe, has no line unless its handler throws: `quiet`.
 */
export function route<S extends RouteContext>(
  handler: RouteHandler<S>,
  path?: string,
  { quiet = false }: { readonly quiet?: boolean } = {},
): RouteHandler<S> {
  return async (request, segment) => {
    const started = performance.now();
    const requestId = requestIdOf(request.headers.get('x-request-id'));
    const facts: RequestLogFields = {};
    let cause: unknown;
    const answered = await withLogFields(facts, () =>
      trackInFlight(async () => {
        const returned = await handler(request, segment);
        if (returned instanceof Response) return returned;
        throw new Error('A handler returned no response');
      }),
    ).catch((error: unknown) => {
      cause = error;
      return failure(error);
    });
    const response = new Response(answered.body, answered);
    response.headers.set('cache-control', 'no-store');
    response.headers.set('x-request-id', requestId);
    const timing = serverTiming(facts);
    if (timing) response.headers.set('server-timing', timing);
    const { method } = request;
    const named = path ?? apiRootOf(request.nextUrl.pathname);
    const ms = performance.now() - started;
    const { status } = response;
    telemetry()?.recordRequest({ method, route: named, status, seconds: ms / 1_000, logFields: facts });
    log[quiet && cause === undefined ? 'debug' : status < 500 ? 'info' : 'error'](
      {
        requestId,
        route: `${method} ${named}`,
        status,
        ms: Math.round(ms),
        ...facts,
        ...(status < 500 ? {} : { error: describeError(cause) }),
      },
      'request',
    );
    return response;
  };
}

/** Responds with 400 in JSON to a request that no route is to see. */
export const badRequest = route(() => {
  throw new HttpError(400, 'Bad request');
});

/** The route of a path that names nothing: 404, as JSON. */
export const notFound = route(() => {
  throw new HttpError(404, 'Not found');
});

/** The route of a method that a path does not have: 405, as JSON. */
export const methodNotAllowed = route(() => {
  throw new HttpError(405, 'Method not allowed');
});
