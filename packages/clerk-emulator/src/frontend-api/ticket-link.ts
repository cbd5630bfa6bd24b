import type { ApiRequest, ApiResponse } from '../http';
import type { Instance } from '../instance/instance';
import { requireTicket, ticketsOf } from '../instance/tickets';
import { requireOwnPage } from './browser';

/**
 * Returns a redirect from the link of an invitation to the page that the invitation names, or else to the account portal. The
 * link of a sign-in or actor token leads to the portal. Adds the ticket, the secret, to the query of the page. Throws a 400 if
 * the page is neither on this machine nor part of the application that proxied the request. A page of another site could use the
 * ticket to sign up.
 */
export function openTicketLink(instance: Instance, request: ApiRequest): ApiResponse {
  const ticket = request.url.searchParams.get('ticket') ?? '';
  const signsIn = ticketsOf(instance, 'sign_in_token').some((token) => token.ticket === ticket);
  const redirectUrl = signsIn ? '/sign-in' : requireTicket(instance, 'invitation', ticket).redirectUrl;
  const page = requireOwnPage(instance, request, new URL(redirectUrl ?? '/sign-up', request.url).href);
  page.searchParams.set('__clerk_ticket', ticket);
  page.searchParams.set('__clerk_status', signsIn ? 'sign_in' : 'sign_up');
  return { status: 303, headers: { location: page.href } };
}
