import { existsSync } from 'node:fs';
import path from 'node:path';
import { type NextFetchEvent, NextRequest } from 'next/server';

/** Address of the application in this process. `send` (requests.ts) passes requests to this address to `handleRequest`. */
export const APPLICATION = 'http://localhost:3000';

const METHODS = ['GET', 'POST', 'OPTIONS'] as const;
const event: NextFetchEvent = Object.create({ waitUntil: () => undefined });

/** Returns the request headers that a middleware response passes on, as Next.js reads them. */
function passedHeaders({ headers }: Response): Headers {
  const names = headers.get('x-middleware-override-headers')?.split(',') ?? [];
  return new Headers(names.map((name) => [name, headers.get(`x-middleware-request-${name}`) ?? '']));
}

/** Runs the middleware of the service, with the provider's real SDK. */
export async function runMiddleware(url: string, init: ConstructorParameters<typeof NextRequest>[1] = {}) {
  const { default: middleware } = await import('../../middleware');
  const response = await middleware(new NextRequest(url, init), event);
  if (!response) throw new Error('The middleware returned no response');
  return { response, headers: passedHeaders(response), isPassed: response.headers.has('x-middleware-next') };
}

/**
 * Handles a request in this process: runs the middleware and then the route module of the path. Next.js's router and its HTTP
 * server are not part of this. Their behavior is tested in tests/service.
 */
export async function handleRequest(url: string, init: RequestInit = {}): Promise<Response> {
  const request = new Request(url, { ...init, ...(init.body ? { duplex: 'half' } : {}) });
  const body = init.body === undefined ? {} : { body: await request.arrayBuffer() };
  const { method } = request;
  const { response, headers, isPassed } = await runMiddleware(url, {
    method,
    headers: request.headers,
    ...body,
  });
  if (!isPassed) return response;
  const file = path.resolve('app', `.${new URL(url).pathname}`, 'route.ts');
  const module: Record<string, (request: NextRequest, context: object) => Promise<Response>> = existsSync(
    file,
  )
    ? await import(file)
    : await import('../../app/api-not-found/route');
  const handler = module[METHODS.find((name) => name === method) ?? ''];
  if (!handler) return new Response(null, { status: method === 'OPTIONS' ? 204 : 405 });
  return handler(new NextRequest(url, { method, headers, ...body }), { params: Promise.resolve({}) });
}
