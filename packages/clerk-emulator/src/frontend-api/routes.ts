import type { Hono } from 'hono';
import { z } from 'zod';
import {
  type ApiRequest,
  type ApiResponse,
  errorBody,
  parse,
  type Routes,
  serve,
  wrapHandlers,
} from '../http';
import { activeSessions } from '../instance/accounts';
import { ApiError, notEmulated } from '../instance/api-error';
import { isClerkPath } from '../instance/clerk-paths';
import { EmailAddress } from '../instance/identifiers';
import type { Instance } from '../instance/instance';
import { issueToken } from '../instance/issued-tokens';
import { activeOrganization } from '../instance/organizations';
import { deviceResource, identifierResources } from '../instance/resources';
import { joinWaitlist, requireTicket, ticketsOf } from '../instance/tickets';
import {
  type BrowserRequest,
  browserState,
  recognizeBrowser,
  requireOwnPage,
  requireOwnSession,
  requireSignedIn,
  type UserRequest,
} from './browser';
import { environment } from './environment';
import { handshake } from './handshake';
import { identificationRoutes } from './identifications';
import { meRoutes } from './me';
import { consent, consentInfo } from './oauth-consent';
import { organizationRoutes } from './organizations';
import { requireReverification, reverificationRoutes } from './reverification';
import { currentClient, sessionRoutes } from './session';
import { signInRoutes } from './sign-in';
import { signUpRoutes } from './sign-up';
import { externalAccountRoutes, socialProvider } from './social';

const Join = z.object({ email_address: EmailAddress });
/** An empty id selects the personal account. */
const TokenRequest = z.object({ organization_id: z.string().optional() });

/** Returns the Frontend API, which the browser SDK calls. A client is Clerk's record of a browser and its sessions. */
export function frontendApi(instance: Instance): Hono {
  const signedIn = (routes: Routes<UserRequest, unknown>) =>
    wrapHandlers(routes, (handler, operation) => (request: BrowserRequest) => {
      const found = requireSignedIn(instance, request);
      requireReverification(instance, operation, found.session);
      return handler({ ...request, ...found });
    });
  const resources: Routes<BrowserRequest, unknown> = {
    ...sessionRoutes(instance),
    ...signInRoutes(instance),
    ...signUpRoutes(instance),
    ...reverificationRoutes(instance),
    ...signedIn({
      ...meRoutes(instance),
      ...identificationRoutes(instance, 'email_address'),
      ...identificationRoutes(instance, 'phone_number'),
      ...externalAccountRoutes(instance),
      ...organizationRoutes(instance),
    }),
  };
  const plain: Routes<BrowserRequest, unknown> = {
    'GET /v1/environment': ({ url }) => environment(instance, url),
    'PATCH /v1/environment': ({ url }) => environment(instance, url),
    'GET /.well-known/jwks.json': () => ({ keys: [instance.signingKey.jwk] }),
    'POST /v1/dev_browser': ({ browser }) => ({ id: browser.establish().token }),
    'POST /v1/waitlist': ({ body }) => {
      const { id } = joinWaitlist(instance, parse(Join, body).email_address);
      return { object: 'waitlist_entry', id };
    },
    'POST /v1/client/sessions/:id/tokens': (request) => newToken(instance, request),
    'POST /v1/client/sessions/:id/tokens/:otherId': (request) => newToken(instance, request),
    'GET /v1/me/oauth/consent/:id': (request) => consentInfo(instance, request),
    ...signedIn({
      'GET /v1/me/sessions/active': ({ user }) =>
        activeSessions(instance, user.id).map((session) => deviceResource(instance, session)),
      'GET /v1/me/email_addresses': ({ user }) => identifierResources(user, 'email_address'),
      'GET /v1/me/phone_numbers': ({ user }) => identifierResources(user, 'phone_number'),
    }),
  };
  const routes: Routes<BrowserRequest> = {
    'GET /v1/tickets/accept': (request) => openTicketLink(instance, request),
    'GET /v1/client/handshake': (request) => handshake(instance, request),
    'POST /v1/me/oauth/consent/:id': (request) => consent(instance, request),
    ...wrapHandlers(plain, (handler) => (request: BrowserRequest) => ({ body: handler(request) })),
    // The SDK reads the new state of the client from the response to each change.
    ...wrapHandlers(resources, (handler) => (request: BrowserRequest) => {
      const response = handler(request);
      return { body: { response, client: currentClient(instance, request.browser) } };
    }),
  };
  // The Backend API has some of the same paths. Its requests have the secret key.
  const isBrowser = (headers: Headers) => !headers.get('authorization')?.startsWith('Bearer sk_');
  const app = serve(
    wrapHandlers(routes, (handler) => (received: ApiRequest) => handleRequest(instance, received, handler)),
    isBrowser,
  );
  app.route('/', socialProvider(instance));
  return app.all('*', ({ req }, next) => {
    if (!isBrowser(req.raw.headers) || !isClerkPath(req.path, 'frontend')) return next();
    throw notEmulated(`${req.method} ${req.path}`);
  });
}

/** Returns a token of a session of the browser. The second id in the path is the name of a token template. */
function newToken(instance: Instance, request: BrowserRequest) {
  const session = requireOwnSession(instance, request, request.id);
  const { origin } = request.browser;
  const { organization_id: requested } = parse(TokenRequest, request.body);
  const organizationId = activeOrganization(instance, session, requested);
  const template = request.otherId || undefined;
  return { object: 'token', jwt: issueToken(instance, session, { origin, template, organizationId }) };
}

/**
 * Returns a redirect from the link of an invitation to the page that the invitation names, or else to the account portal. The
 * link of a sign-in or actor token leads to the portal. Adds the ticket, the secret, to the query of the page. Throws a 400 if
 * the page is neither on this machine nor part of the application that proxied the request. A page of another site could use the
 * ticket to sign up.
 */
function openTicketLink(instance: Instance, request: BrowserRequest): ApiResponse {
  const ticket = request.url.searchParams.get('ticket') ?? '';
  const signsIn = ticketsOf(instance, 'sign_in_token').some((token) => token.ticket === ticket);
  const redirectUrl = signsIn ? '/sign-in' : requireTicket(instance, 'invitation', ticket).redirectUrl;
  const page = requireOwnPage(instance, request, new URL(redirectUrl ?? '/sign-up', request.url).href);
  page.searchParams.set('__clerk_ticket', ticket);
  page.searchParams.set('__clerk_status', signsIn ? 'sign_in' : 'sign_up');
  return { status: 303, headers: { location: page.href } };
}

/** Runs a handler for a browser. Adds the client's headers and cookies to the response, and its state to an error. */
function handleRequest(
  instance: Instance,
  received: ApiRequest,
  handler: (request: BrowserRequest) => ApiResponse,
): ApiResponse {
  const request = { ...received, browser: recognizeBrowser(instance, received) };
  let response: ApiResponse;
  try {
    response = handler(request);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const meta = { client: currentClient(instance, request.browser) };
    response = { status: error.status, body: { ...errorBody(error), meta } };
  }
  const { headers, cookies } = browserState(instance, request);
  return {
    ...response,
    headers: { ...headers, ...response.headers },
    cookies: [...cookies, ...(response.cookies ?? [])],
  };
}
