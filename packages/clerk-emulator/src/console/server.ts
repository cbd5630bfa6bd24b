import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono, type MiddlewareHandler } from 'hono';
import { secureHeaders } from 'hono/secure-headers';
import { close, createHttpServer, listen, type Routes, requireLoopbackHost, serve } from '../http';
import { ApiError } from '../instance/api-error';
import type { Instance } from '../instance/instance';
import { consoleRoutes } from './routes';
import { streamState } from './state';

const PAGE_FOLDER = fileURLToPath(new URL('page/', import.meta.url));
/** Folder of the standalone build of htm and Preact, which `htm` exports only to bundlers. */
const PREACT_FOLDER = new URL('../preact/', pathToFileURL(createRequire(import.meta.url).resolve('htm')));

/** The page shows untrusted event data, so the browser may run only scripts of this server and must not parse text as HTML. */
const withSecurityHeaders = secureHeaders({
  contentSecurityPolicy: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    connectSrc: ["'self'"],
    imgSrc: ["'self'", 'data:'],
    frameAncestors: ["'none'"],
    baseUri: ["'none'"],
    formAction: ["'self'"],
    requireTrustedTypesFor: ["'script'"],
    trustedTypes: ["'none'"],
  },
});

const uncached: MiddlewareHandler = async ({ header }, next) => {
  await next();
  header('cache-control', 'no-store');
};

/**
 * Starts the console, a page that shows and changes the state of an instance, on 127.0.0.1, on any free port if the preferred port is in use. The console requires no sign-in.
 * Instead, it accepts only requests whose `Host` header names this machine. This prevents DNS rebinding. It accepts
 * changes only from its own page, which also calls the operations of the Backend API. Rejects if no port is free.
 */
export async function startConsole(instance: Instance, backendApi: Routes, preferredPort: number) {
  const app = new Hono()
    .use(withSecurityHeaders, uncached, requireLoopbackHost, requireSameOrigin)
    .get('/api/state', (context) => streamState(instance, context))
    .get('/preact.js', serveStatic({ root: fileURLToPath(PREACT_FOLDER), path: 'standalone.module.js' }))
    .get('*', serveStatic({ root: PAGE_FOLDER }))
    .use(requireOwnPage)
    .route('/', serve({ ...backendApi, ...consoleRoutes(instance) }));
  const server = createHttpServer(app, ({ message, parameter }) => ({ message, parameter }));
  server.requestTimeout = 10_000;
  const port = await listen(server, preferredPort).catch(() => listen(server));
  return {
    url: `http://127.0.0.1:${port}`,
    /** Closes all connections. Open pages show that the emulator is down, and reconnect after a restart. */
    stop: () => close(server),
  };
}

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
