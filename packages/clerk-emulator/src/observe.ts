import type { Context, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { errorBody, respond } from './http';
import { ApiError, notEmulated } from './instance/api-error';
import type { Instance } from './instance/instance';

/**
 * Logs each request, and makes a call fail or wait if a failure was added for its operation. Warns about an operation that the emulator
 * lacks, because applications often hide the error.
 */
export function observe({ failures, requests, clock }: Instance): MiddlewareHandler {
  return async (context, next) => {
    const { method, path } = context.req;
    const at = clock.now();
    const failure = failures.take(operationOf(context));
    if (failure) await new Promise<void>((resolve) => clock.after(failure.delayMilliseconds, resolve));
    if (failure?.status !== undefined) context.res = failedResponse(failure.status);
    else await next();
    if (context.res.status === 501) console.warn(notEmulated(`${method} ${path}`).message);
    requests.add({ method, path, status: context.res.status, at, durationMilliseconds: clock.now() - at });
  };
}

/** Returns the operation that the request calls, such as `GET /v1/users/:id`, or an empty string if there is none. */
function operationOf(context: Context): string {
  const route = matchedRoutes(context).find(({ method }) => method !== 'ALL');
  return route ? `${route.method} ${route.path}` : '';
}

function failedResponse(status: number): Response {
  const code = status === 429 ? 'too_many_requests' : 'internal_clerk_error';
  const message = 'This call fails because a failure was added for its operation.';
  const headers = status === 429 ? { 'retry-after': '1' } : {};
  return respond({ status, headers, body: errorBody(new ApiError(status, code, message)) });
}
