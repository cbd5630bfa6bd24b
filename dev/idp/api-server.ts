import type { Server } from 'node:http';
import { Hono } from 'hono';
import { cors } from 'hono/cors';
import { methodOverride } from 'hono/method-override';
import { backendApi } from './backend-api/routes';
import { requireSecretKey } from './backend-api/secret-key';
import type { ClerkJs } from './clerk-js';
import { isLoopback } from './frontend-api/browser';
import { frontendApi } from './frontend-api/routes';
import { errorBody, httpServer } from './http';
import type { Instance } from './instance';

/** The HTTP server of one instance: both APIs and the scripts of the browser SDK. */
export function apiServer(instance: Instance, clerkJs: ClerkJs): Server {
  const app = new Hono();
  // A browser asks for PATCH and DELETE so: its POST needs no preflight.
  app.use(methodOverride({ app, query: '_method' }));
  // Lets pages of this machine call without a proxy. No other site is allowed to read an answer.
  app.use(
    cors({
      origin: (origin) => (isLoopback(origin) ? origin : null),
      credentials: true,
      allowMethods: ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'],
      allowHeaders: ['authorization', 'content-type'],
      exposeHeaders: ['clerk-db-jwt'],
    }),
  );
  app.get('/npm/*', ({ req }) => clerkJs(req.path));
  app.route('/', frontendApi(instance));
  // Everything else needs the secret key, also what there is not.
  app.use(({ req }, next) => {
    requireSecretKey(instance, req.header('authorization'));
    return next();
  });
  app.route('/', backendApi(instance));
  return httpServer(app, errorBody);
}
