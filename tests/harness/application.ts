import { type NextFetchEvent, NextRequest } from 'next/server';

const event: NextFetchEvent = Object.create({ waitUntil: () => undefined });

/** Runs the middleware of the service in this process, with the provider's real SDK. */
export async function runMiddleware(url: string, init: ConstructorParameters<typeof NextRequest>[1] = {}) {
  const { default: middleware } = await import('../../middleware');
  const response = await middleware(new NextRequest(url, init), event);
  if (!response) throw new Error('The middleware returned no response');
  const names = response.headers.get('x-middleware-override-headers')?.split(',') ?? [];
  /** The request headers that Next.js passes on. */
  const headers = new Headers(
    names.map((name) => [name, response.headers.get(`x-middleware-request-${name}`) ?? '']),
  );
  return { response, headers, isPassed: response.headers.has('x-middleware-next') };
}
