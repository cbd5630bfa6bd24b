import { Hono } from 'hono';
import { z } from 'zod';
import { type ApiRequest, parse, type Routes, serve, wrapHandlers } from '../http';
import { ApiError, requireFound } from '../instance/api-error';
import { type Instance, isSecretKey } from '../instance/instance';
import { controlRoutes } from './control';
import { identificationRoutes } from './identifications';
import { organizationDomainRoutes } from './organization-domains';
import { membershipRoutes, organizationInvitationRoutes, organizationRoutes } from './organizations';
import { sessionRoutes } from './sessions';
import { invitationRoutes, signInTokenRoutes } from './tickets';
import { tokenTemplateRoutes } from './token-templates';
import { userListRoutes } from './user-lists';
import { userRoutes } from './users';
import { waitlistRoutes } from './waitlist';

const PayloadQuery = z.object({ nonce: z.string().min(1) });

/**
 * Returns the operations of the Backend API. Each has a 404 for an unknown id in its path, and a 422 for an invalid field, page or
 * file. Clerk's document lists these two statuses for most operations, and no other status for such a request to the rest.
 */
export function backendRoutes(instance: Instance): Routes {
  const routes: Routes<ApiRequest, unknown> = {
    'GET /v1/jwks': () => ({ keys: [instance.signingKey.jwk] }),
    // The application's server exchanges the nonce of a handshake for cookies, which it sets in the browser.
    'GET /v1/clients/handshake_payload': ({ url }) => {
      const { nonce } = parse(PayloadQuery, Object.fromEntries(url.searchParams));
      return { directives: requireFound(instance.handshakes.take(nonce), 'The handshake') };
    },
    ...controlRoutes(instance),
    ...userListRoutes(instance),
    ...userRoutes(instance),
    ...identificationRoutes(instance, 'email_address'),
    ...identificationRoutes(instance, 'phone_number'),
    ...sessionRoutes(instance),
    ...organizationRoutes(instance),
    ...membershipRoutes(instance),
    ...organizationInvitationRoutes(instance),
    ...organizationDomainRoutes(instance),
    ...signInTokenRoutes(instance),
    ...invitationRoutes(instance),
    ...tokenTemplateRoutes(instance),
    ...waitlistRoutes(instance),
  };
  return wrapHandlers(routes, (handler) => (request: ApiRequest) => ({ body: handler(request) }));
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
