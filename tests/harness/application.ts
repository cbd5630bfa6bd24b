import type { Emulator } from 'clerk-emulator';
import { type NextFetchEvent, NextRequest } from 'next/server';
import { afterAll, beforeAll, vi } from 'vitest';
import { BUILD_TIME_VALUES } from './build';
import { startProvider } from './identity-provider';
import { PUBLISHABLE_KEY, SECRET_KEY } from './keys';

/**
 * Starts an identity provider for a test file, and configures the middleware of the service in this process to use it. Stops
 * the provider after the tests.
 */
export async function startMiddleware(variables: Readonly<Record<string, string>>): Promise<Emulator> {
  const idp = await startProvider();
  const environment = {
    ...BUILD_TIME_VALUES,
    IDP_SECRET_KEY: SECRET_KEY,
    IDP_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
    IDP_JWT_KEY: idp.publicKeyPem,
    CLERK_API_URL: idp.url,
    ...variables,
  };
  beforeAll(() => {
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await idp.stop();
  });
  return idp;
}

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
