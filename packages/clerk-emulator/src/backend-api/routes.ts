import { Hono } from 'hono';
import { type Routes, serve } from '../http';
import { ApiError } from '../instance/error';
import { type Instance, isSecretKey } from '../instance/instance';
import { jwks } from '../instance/tokens';
import { emailAddressRoutes } from './email-addresses';
import { handshakeRoutes } from './handshakes';
import { organizationRoutes } from './organizations';
import { sessionRoutes } from './sessions';
import { ticketRoutes } from './tickets';
import { userRoutes } from './users';

/** Returns the operations of the Backend API. */
export function backendRoutes(instance: Instance): Routes {
  return {
    'GET /v1/jwks': () => ({ body: jwks(instance.signingKey) }),
    ...userRoutes(instance),
    ...emailAddressRoutes(instance),
    ...sessionRoutes(instance),
    ...organizationRoutes(instance),
    ...handshakeRoutes(instance),
    ...ticketRoutes(instance),
  };
}

/** Serves operations to requests that contain the secret key. */
export function backendApi(instance: Instance, routes: Routes): Hono {
  return new Hono()
    .use(({ req }, next) => {
      requireSecretKey(instance, req.header('authorization'));
      return next();
    })
    .route('/', serve(routes));
}

/** Throws Clerk's 401 unless the `Authorization` header contains the secret key. */
function requireSecretKey(instance: Instance, authorization: string | undefined): void {
  if (authorization === undefined) {
    throw new ApiError(401, 'authentication_invalid', 'Invalid Authentication: no secret key was sent.');
  }
  if (!isSecretKey(instance, authorization.replace(/^Bearer /, ''))) {
    throw new ApiError(
      401,
      'clerk_key_invalid',
      'The provided Clerk Secret Key is invalid. Make sure that your Clerk Secret Key is correct.',
    );
  }
}
