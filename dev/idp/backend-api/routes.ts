import { Hono } from 'hono';
import { serve } from '../http';
import { ApiError } from '../instance/error';
import { type Instance, isSecretKey } from '../instance/instance';
import { jwks } from '../instance/tokens';
import { sessionRoutes } from './sessions';
import { userRoutes } from './users';

/** The Backend API: what the application's server and its scripts may do with the secret key, and nobody without. */
export function backendApi(instance: Instance): Hono {
  const routes = {
    'GET /v1/jwks': () => ({ body: jwks(instance.signingKey) }),
    ...userRoutes(instance),
    ...sessionRoutes(instance),
  };
  return new Hono()
    .use(({ req }, next) => {
      requireSecretKey(instance, req.header('authorization'));
      return next();
    })
    .route('/', serve(routes));
}

/** Throws the provider's 401 unless a request's authorization is the secret key. */
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
