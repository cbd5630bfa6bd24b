import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { errorBody, respond } from './http';
import { ApiError } from './instance/error';
import type { PendingFailure } from './instance/failures';
import type { Instance } from './instance/instance';

/** A response of the Frontend API or the Backend API. */
export interface SentResponse {
  readonly method: string;
  /** Path of the request, without its query. */
  readonly path: string;
  readonly status: number;
  /** JSON, or an empty string for a response without a body. */
  readonly body: string;
}

/**
 * Applies the failures that were added to the instance, logs each request, and passes its response to `onResponse`. A failure
 * delays the calls of an operation or makes them fail.
 */
export function observe(
  { failures, requests, clock }: Instance,
  onResponse: ((response: SentResponse) => void) | undefined,
): MiddlewareHandler {
  return async (context, next) => {
    const { method, path } = context.req;
    const at = clock.now();
    const failure = failures.take(operationOf(context));
    const delay = failure?.delayMilliseconds;
    if (delay !== undefined) await new Promise<void>((resolve) => clock.after(delay, resolve));
    const failed = failure && fail(failure, context.env);
    if (failed) context.res = failed;
    else await next();
    const isSent = failure?.disconnect === undefined;
    const status = isSent ? context.res.status : null;
    requests.add({ method, path, status, at, durationMilliseconds: clock.now() - at });
    if (status !== null) onResponse?.({ method, path, status, body: await context.res.clone().text() });
  };
}

/** Returns the operation that the request calls, such as `GET /v1/users/:id`, or an empty string if there is none. */
function operationOf(context: Context): string {
  const route = matchedRoutes(context).find(({ method }) => method !== 'ALL');
  return route ? `${route.method} ${route.path}` : '';
}

/** Returns the response of a failed call, or undefined if the operation runs. */
function fail({ status, disconnect }: PendingFailure, { incoming }: HttpBindings): Response | undefined {
  if (disconnect) {
    incoming.destroy();
    return RESPONSE_ALREADY_SENT;
  }
  if (status === undefined) return undefined;
  const code = status === 429 ? 'too_many_requests' : 'internal_clerk_error';
  const body = errorBody(
    new ApiError(status, code, 'This call fails because a failure was added for its operation.'),
  );
  return respond({ status, headers: status === 429 ? { 'retry-after': '1' } : {}, body });
}
