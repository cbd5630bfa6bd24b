import type { ApiRequest, ApiResponse } from '../http';
import { ApiError } from '../instance/error';
import type { Instance } from '../instance/instance';
import { requireTicket } from '../instance/tickets';
import { isTrustedOrigin } from './browser';

/**
 * Returns a redirect from the link of an invitation to the page that the invitation names, or else to the account portal. Adds
 * the ticket, the secret of the invitation, to the query of the page. Throws a 400 if the page is neither on this machine nor
 * part of the application that proxied the request. A page of another site could use the ticket to sign up.
 */
export function openTicketLink(instance: Instance, request: ApiRequest): ApiResponse {
  const ticket = request.url.searchParams.get('ticket') ?? '';
  const { redirectUrl } = requireTicket(instance, 'invitation', ticket);
  const page = new URL(redirectUrl ?? '/sign-up', request.url);
  if (!isTrustedOrigin(instance, request, page.origin)) {
    const message =
      'The redirect_url of the invitation is neither on this machine nor part of this application.';
    throw new ApiError(400, 'url_invalid', message, 'redirect_url');
  }
  page.searchParams.set('__clerk_ticket', ticket);
  page.searchParams.set('__clerk_status', 'sign_up');
  return { status: 303, headers: { location: page.href } };
}
