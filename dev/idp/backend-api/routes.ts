import type { Hono } from 'hono';
import { type Routes, serve } from '../http';
import type { Instance } from '../instance';
import { jwks } from '../tokens';
import { sessionRoutes } from './sessions';
import { userRoutes } from './users';

/** The Backend API: what the application's server and its scripts may do with the secret key. */
export function backendApi(instance: Instance): Hono {
  const routes: Routes = {
    'GET /v1/jwks': () => ({ body: jwks(instance.signingKey) }),
    ...userRoutes(instance),
    ...sessionRoutes(instance),
  };
  return serve(routes, (handler, request) => handler(request));
}
