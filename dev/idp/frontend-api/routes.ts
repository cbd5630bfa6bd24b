import type { Hono } from 'hono';
import { issueToken } from '../accounts';
import {
  ApiError,
  type ApiRequest,
  type ApiResponse,
  errorBody,
  notFound,
  type Routes,
  serve,
} from '../http';
import type { Instance } from '../instance';
import { jwks } from '../tokens';
import { type BrowserRequest, browserState, recogniseBrowser, requireOwnSession } from './browser';
import { environment } from './environment';
import { handshake } from './handshake';
import { activeDevices, meRoutes } from './me';
import { clientResource } from './resources';
import { sessionRoutes } from './session';
import { signInRoutes } from './sign-in';
import { signUpRoutes } from './sign-up';

/** The Frontend API: what the SDK in a browser may do with the browser's own client. */
export function frontendApi(instance: Instance): Hono {
  const resources: Routes<BrowserRequest, unknown> = {
    ...sessionRoutes(instance),
    ...signInRoutes(instance),
    ...signUpRoutes(instance),
    ...meRoutes(instance),
  };
  const unknown = ({ url }: ApiRequest) => {
    throw notFound(url.pathname);
  };
  const routes: Routes<BrowserRequest> = {
    'GET /v1/environment': () => ({ body: environment(instance) }),
    'PATCH /v1/environment': () => ({ body: environment(instance) }),
    'GET /.well-known/jwks.json': () => ({ body: jwks(instance.signingKey) }),
    'POST /v1/dev_browser': ({ browser }) => ({
      body: { object: 'dev_browser', id: browser.establish().token },
    }),
    'GET /v1/client/handshake': (request) => handshake(instance, request),
    'POST /v1/client/sessions/:id/tokens': (request) => {
      const session = requireOwnSession(instance, request, request.id);
      return { body: { object: 'token', jwt: issueToken(instance, session, request.browser) } };
    },
    'GET /v1/me/sessions/active': (request) => ({ body: activeDevices(instance, request) }),
    ...withClient(instance, resources),
    'ALL /v1/client/*': unknown,
    'ALL /v1/me/*': unknown,
    'ALL /v1/environment/*': unknown,
    'ALL /v1/dev_browser/*': unknown,
    'ALL /.well-known/*': unknown,
  };
  return serve(routes, (handler, received) => {
    const request = { ...received, browser: recogniseBrowser(instance, received) };
    const response = answer(instance, request, handler);
    const { headers, cookies } = browserState(instance, request);
    return {
      ...response,
      headers: { ...headers, ...response.headers },
      cookies: [...cookies, ...(response.cookies ?? [])],
    };
  });
}

/** The SDK takes the client's new state from the answer to each change. */
function withClient(instance: Instance, resources: Routes<BrowserRequest, unknown>): Routes<BrowserRequest> {
  const wrapped = Object.entries(resources).map(([route, handler]) => [
    route,
    (request: BrowserRequest) => ({
      body: {
        response: handler(request),
        client: route.startsWith('GET') ? null : clientResource(instance, request.browser),
      },
    }),
  ]);
  return Object.fromEntries(wrapped);
}

/** An error too carries the client, so that a tab learns what another one has done. */
function answer(
  instance: Instance,
  request: BrowserRequest,
  handler: (request: BrowserRequest) => ApiResponse,
): ApiResponse {
  try {
    return handler(request);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const meta = { client: clientResource(instance, request.browser) };
    return { status: error.status, body: { ...errorBody(error), meta } };
  }
}
