import { Hono } from 'hono';
import { errorBody, respond, serve } from '../http';
import { ApiError } from '../instance/error';
import { type Instance, isSecretKey } from '../instance/instance';
import { jwks } from '../instance/tokens';
import { handshakeRoutes } from './handshakes';
import { sessionRoutes } from './sessions';
import { ticketRoutes } from './tickets';
import { userRoutes } from './users';

/** Returns the Backend API. Every request must contain the secret key. */
export function backendApi(instance: Instance): Hono {
  const routes = {
    'GET /v1/jwks': () => ({ body: jwks(instance.signingKey) }),
    ...userRoutes(instance),
    ...sessionRoutes(instance),
    ...handshakeRoutes(instance),
    ...ticketRoutes(instance),
  };
  return new Hono()
    .use(({ req }, next) => {
      requireSecretKey(instance, req.header('authorization'));
      return next();
    })
    .use('/v1/users/*', (_context, next) => {
      const seconds = instance.rateLimit.take();
      return seconds === undefined ? next() : Promise.resolve(tooManyRequests(seconds));
    })
    .route('/', serve(routes));
}

/** Returns Clerk's 429. `seconds` is the time until the rate limit accepts requests again. */
function tooManyRequests(seconds: number): Response {
  const error = new ApiError(429, 'too_many_requests', 'Too many requests. Please try again in a bit.');
  return respond({ status: 429, headers: { 'retry-after': String(seconds) }, body: errorBody(error) });
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
