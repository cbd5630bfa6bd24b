import { AsyncLocalStorage } from 'node:async_hooks';
import { signingKey, startEmulator } from 'clerk-emulator';
import { type NextFetchEvent, NextRequest } from 'next/server';
import { vi } from 'vitest';
import { z } from 'zod';
import { setEnvironment } from '#lib/env';
import { BUILD_TIME_VALUES } from '../harness/build';
import { SIGNING_KEY_PEM } from '../harness/dependencies/signing-key';

/** Origin of the service under test, which runs in the process of the test. */
export const ORIGIN = 'http://localhost:3000';

/** Keys of a development and of a production instance of Clerk. */
export const KEYS = {
  test: {
    IDP_SECRET_KEY: BUILD_TIME_VALUES.IDP_SECRET_KEY,
    IDP_PUBLISHABLE_KEY: BUILD_TIME_VALUES.IDP_PUBLISHABLE_KEY,
  },
  live: {
    IDP_SECRET_KEY: 'sk_live_valueofthebuildsecretkey',
    IDP_PUBLISHABLE_KEY: `pk_live_${Buffer.from('clerk.build.example$').toString('base64')}`,
  },
} as const;

/** The development instance that signs the tokens. */
export const instance = {
  issuer: 'https://build.clerk.accounts.dev',
  signingKey: signingKey(SIGNING_KEY_PEM),
};

/** Starts an emulator of the instance with these keys. */
export const startInstance = ({ IDP_SECRET_KEY, IDP_PUBLISHABLE_KEY }: (typeof KEYS)['test' | 'live']) =>
  startEmulator({
    secretKey: IDP_SECRET_KEY,
    publishableKey: IDP_PUBLISHABLE_KEY,
    signingKeyPem: SIGNING_KEY_PEM,
  });

const Body = z.object({ user: z.string() });
/** Prefix of the response headers in which a Next.js middleware passes request headers to a route. */
const PREFIX = 'x-middleware-request-';

/** Returns the headers that a response of the middleware passes to a route. */
export const routeHeaders = ({ headers }: Response): Headers =>
  new Headers(
    [...headers].flatMap(([name, value]) =>
      name.startsWith(PREFIX) ? [[name.slice(PREFIX.length), value]] : [],
    ),
  );

interface OutgoingCall {
  readonly url: string;
  readonly headers: Headers;
}

/**
 * Loads the middleware, the guard (session check of a route) and the installed SDK with this environment. Records every call of
 * `fetch`, because the SDK and the service use `fetch` to call the provider.
 */
export async function loadService(environment: Readonly<Record<string, string>>) {
  const calls: OutgoingCall[] = [];
  const send = globalThis.fetch;
  const record: typeof fetch = (input, init) => {
    const request = new Request(input, init);
    calls.push({ url: request.url, headers: request.headers });
    return send(request);
  };
  vi.stubGlobal('fetch', record);
  for (const [name, value] of Object.entries({ ...BUILD_TIME_VALUES, ...environment }))
    vi.stubEnv(name, value);
  setEnvironment(undefined);
  vi.resetModules();
  // The mock of `headers()` returns the request headers of the current route, as Next.js does.
  const current = new AsyncLocalStorage<Headers>();
  vi.doMock('next/headers', () => ({ headers: async () => current.getStore() }));
  vi.doMock('#lib/user-id', () => ({ resolveUserId: async () => 'internal-id' }));
  const { default: middleware } = await import('../../middleware');
  const { guard } = await import('#lib/guard');
  const { json } = await import('#lib/http/route');
  const { log } = await import('#lib/log');
  const sdk = await import('#lib/idp/server');
  const info = vi.spyOn(log, 'info').mockReturnValue();
  for (const level of ['warn', 'error'] as const) {
    vi.spyOn(log, level).mockReturnValue();
    vi.spyOn(console, level).mockReturnValue();
  }

  const event: NextFetchEvent = Object.create(null);
  const request = (path: string, headers: Headers | Record<string, string>) =>
    new NextRequest(new URL(path, ORIGIN), { headers });
  const guarded = guard((_request, { identityProviderUserId }) => json({ user: identityProviderUserId }));

  /** Runs a guarded route with the headers that the middleware passed. */
  async function runRoute(headers: Headers) {
    info.mockClear();
    const response = await current.run(headers, () =>
      guarded(request('/users/v1/me', headers), { params: Promise.resolve({}) }),
    );
    const { status } = response;
    if (status === 200) return { status, user: Body.parse(await response.json()).user };
    return {
      status,
      reason: z.object({ reason: z.string() }).safeParse(info.mock.lastCall?.[0]).data?.reason,
    };
  }

  /** Runs the middleware for a request. Rejects if there is no response. */
  async function pass(path: string, headers: Record<string, string> = {}): Promise<Response> {
    const response = await middleware(request(path, headers), event);
    if (!response) throw new Error('The middleware returned no response');
    return response;
  }

  return {
    calls,
    pass,
    runRoute,
    /** Sends an API request through the middleware and a guarded route. */
    api: async (headers: Record<string, string>) =>
      runRoute(routeHeaders(await pass('/users/v1/me', headers))),
    /** Runs the SDK's own middleware for a request, with the keys of the development instance. */
    async sdkMiddleware(headers: Record<string, string>): Promise<Response> {
      const middleware = sdk.clerkMiddleware({
        publishableKey: KEYS.test.IDP_PUBLISHABLE_KEY,
        jwtKey: instance.signingKey.publicKeyPem,
      });
      const response = await middleware(request('/users/v1/me', headers), event);
      if (!response) throw new Error('The SDK returned no response');
      return response;
    },
    /** Calls `auth()` in a route whose request has these headers. */
    auth: (headers: Headers) => current.run(headers, () => sdk.auth()),
  };
}

export type Service = Awaited<ReturnType<typeof loadService>>;
