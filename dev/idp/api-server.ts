import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { backendApi } from './backend-api/routes';
import { requireSecretKey } from './backend-api/secret-key';
import type { ClerkJs } from './clerk-js';
import { isLoopback } from './frontend-api/browser';
import { frontendApi } from './frontend-api/routes';
import { ApiError, type ApiResponse, errorBody, findRoute, notFound, readBody } from './http';
import type { Instance } from './instance';

/** What a browser asks for; everything else is the Backend API and needs the secret key. */
const FRONTEND_PATH = /^\/v1\/(client|environment|dev_browser|me)(\/|$)|^\/\.well-known\//;

/** The HTTP server of one instance: both APIs and the scripts of the browser SDK, each request answered whatever it holds. */
export function apiServer(instance: Instance, clerkJs: ClerkJs): Server {
  const frontend = frontendApi(instance);
  const backend = backendApi(instance);
  const answer = async (request: IncomingMessage, url: URL): Promise<ApiResponse> => {
    if (request.method === 'OPTIONS') return { status: 204 };
    const { headers } = request;
    const call = { method: request.method ?? 'GET', url, id: '', body: await readBody(request), headers };
    if (FRONTEND_PATH.test(url.pathname)) return frontend(call);
    requireSecretKey(instance, call);
    const route = findRoute(backend, call.method, url.pathname);
    if (route === undefined) throw notFound(`${call.method} ${url.pathname}`);
    return route.handler({ ...call, id: route.id });
  };
  return createServer((request, response) => {
    allowLoopbackOrigin(request, response);
    const address = `http://127.0.0.1${request.url}`;
    if (!URL.canParse(address)) {
      send(response, asResponse(notFound('The path')));
      return;
    }
    const url = new URL(address);
    if (clerkJs.serves(url.pathname)) {
      void clerkJs.serve(url.pathname, response);
      return;
    }
    void answer(request, url)
      .catch((error: unknown) => asResponse(error))
      .then((result) => send(response, result));
  });
}

/** Lets pages of this machine call without a proxy. No other site is allowed to read an answer. */
function allowLoopbackOrigin({ headers: { origin } }: IncomingMessage, response: ServerResponse): void {
  response.setHeader('vary', 'origin');
  if (origin === undefined || !isLoopback(origin)) return;
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-allow-credentials', 'true');
  response.setHeader('access-control-allow-methods', 'GET, POST, PATCH, PUT, DELETE');
  response.setHeader('access-control-allow-headers', 'authorization, content-type');
  response.setHeader('access-control-expose-headers', 'clerk-db-jwt');
}

function asResponse(error: unknown): ApiResponse {
  if (error instanceof ApiError) return { status: error.status, body: errorBody(error) };
  console.error('The identity provider stand-in failed:', error);
  const failure = new ApiError(500, 'internal_clerk_error', 'The identity provider stand-in failed.');
  return { status: failure.status, body: errorBody(failure) };
}

/** The Backend SDK reads an answer as JSON only if its content type is exactly this. */
const JSON_TYPE = 'application/json';

function send(
  response: ServerResponse,
  { status = 200, headers = {}, cookies = [], body }: ApiResponse,
): void {
  for (const cookie of cookies) response.appendHeader('set-cookie', cookie);
  response.writeHead(status, { 'cache-control': 'no-store', 'content-type': JSON_TYPE, ...headers });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}
