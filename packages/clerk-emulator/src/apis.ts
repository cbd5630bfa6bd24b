import type { Context, MiddlewareHandler } from 'hono';
import { Hono } from 'hono';
import { cors } from 'hono/cors';
import { methodOverride } from 'hono/method-override';
import { matchedRoutes } from 'hono/route';
import { getPath } from 'hono/utils/url';
import { backendApi } from './backend-api/routes';
import type { ClerkJs } from './clerk-js';
import { authorizationServer } from './frontend-api/oauth';
import { frontendApi } from './frontend-api/routes';
import { errorBody, isLoopback, type Routes, requireLoopbackHost, respond } from './http';
import { ApiError, notEmulated, notFound } from './instance/api-error';
import { isClerkPath } from './instance/clerk-paths';
import { imageResponse } from './instance/images';
import type { Instance } from './instance/instance';
import { portal } from './portal';

/** Routes requests to clerk-js, the authorization server, the Frontend API and, for all other paths, the Backend API. */
export function createApis(instance: Instance, backend: Routes, clerkJs: ClerkJs): Hono {
  // clerk-js ends some paths with a slash.
  const app = new Hono({ getPath: (request) => getPath(request).replace(/(?<=[^/])\/$/, '') });
  app.use(requireLoopbackHost);
  // clerk-js sends PATCH and DELETE as a POST with the parameter `_method`, because a POST does not need a CORS preflight.
  app.use(methodOverride({ app, query: '_method' }));
  // Pages on this machine may call the APIs without a proxy. Pages of other sites must not read responses.
  app.use(
    cors({
      origin: (origin) => (isLoopback(origin) ? origin : null),
      credentials: true,
      allowMethods: ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'],
      allowHeaders: ['authorization', 'content-type', 'mcp-protocol-version'],
      exposeHeaders: ['authorization', 'clerk-db-jwt'],
    }),
  );
  app.get('/npm/*', ({ req }) => clerkJs(req.path));
  app.get('/images/:id', ({ req }) => imageResponse(instance, req.param('id')));
  app.route('/', portal(instance));
  app.use(observe(instance));
  return app
    .route('/', authorizationServer(instance))
    .route('/', frontendApi(instance))
    .route('/', backendApi(instance, backend))
    .all('*', ({ req }) => {
      const operation = `${req.method} ${req.path}`;
      throw isClerkPath(req.path, 'backend') ? notEmulated(operation) : notFound(operation);
    });
}

/** Returns the operations that an app serves, such as `GET /v1/users/:id`. */
export function listOperations({ routes }: Hono): string[] {
  const operations = routes
    .filter(({ method, path }) => method !== 'ALL' && /^\/(v1|oauth|\.well-known)\/.*[^*]$/.test(path))
    .map(({ method, path }) => `${method} ${path}`);
  return [...new Set(operations)];
}

/**
 * Logs each request, and makes a call fail or wait if a failure was added for its operation. Warns about an operation that the emulator
 * lacks, because applications often hide the error.
 */
function observe({ failures, requests, clock }: Instance): MiddlewareHandler {
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
