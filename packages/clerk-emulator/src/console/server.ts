import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono, type MiddlewareHandler } from 'hono';
import { close, createHttpServer, listen, type Routes, requireLoopbackHost, serve } from '../http';
import { ApiError } from '../instance/api-error';
import type { Instance } from '../instance/instance';
import { consoleRoutes } from './routes';
import { streamState } from './state';

/** The console of one instance: a page that shows and changes the state of the emulator. */
export interface Console {
  readonly url: string;
  /** Closes all connections. Open pages show that the emulator is down, and reconnect after a restart. */
  stop(): Promise<void>;
}

const PAGE_FOLDER = fileURLToPath(new URL('page/', import.meta.url));
/** Folder of the standalone build of htm and Preact, which `htm` exports only to bundlers. */
const PREACT_FOLDER = new URL('../preact/', pathToFileURL(createRequire(import.meta.url).resolve('htm')));

/** The page shows untrusted event data, so the browser may run only scripts of this server and must not parse text as HTML. */
const SECURITY_HEADERS = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/**
 * Starts the console on 127.0.0.1, on any free port if the preferred port is in use. The console requires no sign-in.
 * Instead, it accepts only requests whose `Host` header names this machine. This prevents DNS rebinding. It accepts
 * changes only from its own page, which also calls the operations of the Backend API. Rejects if no port is free.
 */
export async function startConsole(
  instance: Instance,
  backendApi: Routes,
  preferredPort: number,
): Promise<Console> {
  const app = new Hono()
    .use(withSecurityHeaders, requireLoopbackHost, requireSameOrigin)
    .get('/api/state', (context) => streamState(instance, context))
    .get('/preact.js', serveStatic({ root: fileURLToPath(PREACT_FOLDER), path: 'standalone.module.js' }))
    .get('*', serveStatic({ root: PAGE_FOLDER }))
    .use(requireOwnPage)
    .route('/', serve({ ...backendApi, ...consoleRoutes(instance) }));
  const server = createHttpServer(app, ({ message, parameter }) => ({ message, parameter }));
  server.requestTimeout = 10_000;
  const port = await listen(server, preferredPort).catch(() => listen(server));
  return { url: `http://127.0.0.1:${port}`, stop: () => close(server) };
}

const withSecurityHeaders: MiddlewareHandler = async (context, next) => {
  await next();
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) context.header(name, value);
};

/** Throws a 403 if a page of another origin made the request. Allows navigations, so any page may link to the console. */
const requireSameOrigin: MiddlewareHandler = ({ req }, next) => {
  const site = req.header('sec-fetch-site') ?? 'none';
  const isNavigation = req.header('sec-fetch-mode') === 'navigate';
  if (site !== 'same-origin' && site !== 'none' && !isNavigation) {
    throw new ApiError(
      403,
      'site_refused',
      'The console does not accept requests from pages of other origins.',
    );
  }
  return next();
};

/** Throws a 403 for a change that does not come from the page of the console, and a 415 for a change whose body is not JSON. */
const requireOwnPage: MiddlewareHandler = ({ req }, next) => {
  if (req.method === 'GET') return next();
  if (req.header('origin') !== `http://${req.header('host')}`) {
    throw new ApiError(403, 'origin_refused', 'Only the page of the console may make changes.');
  }
  if (req.header('content-type')?.split(';')[0]?.trim().toLowerCase() !== 'application/json') {
    throw new ApiError(415, 'content_type_refused', 'The body must be application/json.');
  }
  return next();
};
