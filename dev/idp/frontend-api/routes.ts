import { issueToken } from '../accounts';
import {
  ApiError,
  type ApiRequest,
  type ApiResponse,
  errorBody,
  findRoute,
  notFound,
  type Routes,
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
export function frontendApi(instance: Instance): (request: ApiRequest) => ApiResponse {
  const resources: Routes<BrowserRequest, unknown> = {
    ...sessionRoutes(instance),
    ...signInRoutes(instance),
    ...signUpRoutes(instance),
    ...meRoutes(instance),
  };
  const plain: Routes<BrowserRequest> = {
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
  };
  const answer = (request: BrowserRequest): ApiResponse => {
    const { method, url, browser } = request;
    const raw = findRoute(plain, method, url.pathname);
    if (raw) return raw.handler({ ...request, browser, id: raw.id });
    const route = findRoute(resources, method, url.pathname);
    if (route === undefined) throw notFound(`${method} ${url.pathname}`);
    const response = route.handler({ ...request, browser, id: route.id });
    // The SDK takes the client's new state from the answer to each change.
    return { body: { response, client: method === 'GET' ? null : clientResource(instance, browser) } };
  };
  return (received) => {
    const method = received.url.searchParams.get('_method') ?? received.method;
    const request = { ...received, method, browser: recogniseBrowser(instance, received) };
    const response = withClient(instance, request, answer);
    const { headers, cookies } = browserState(instance, request);
    return {
      ...response,
      headers: { ...headers, ...response.headers },
      cookies: [...cookies, ...(response.cookies ?? [])],
    };
  };
}

/** An error too carries the client, so that a tab learns what another one has done. */
function withClient(
  instance: Instance,
  request: BrowserRequest,
  answer: (request: BrowserRequest) => ApiResponse,
): ApiResponse {
  try {
    return answer(request);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const meta = { client: clientResource(instance, request.browser) };
    return { status: error.status, body: { ...errorBody(error), meta } };
  }
}
