import { z } from 'zod';
import { pageOf, parse, type Routes } from '../http';
import { EmailAddress, requireFree, requireUser } from '../instance/accounts';
import { ApiError } from '../instance/error';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { invitationResource, signInTokenResource } from '../instance/resources';
import { newTicket, revokeTicket, ticketsOf } from '../instance/tickets';

const DAY = 24 * 60 * 60 * 1000;
const DEFAULT_DAYS = 30;
const TESTING_TOKEN_SECONDS = 60 * 60;

const CreateSignInToken = z.strictObject({
  user_id: z.string(),
  expires_in_seconds: z.number().int().min(1).nullish(),
});
const CreateInvitation = z.strictObject({
  email_address: EmailAddress,
  public_metadata: z.record(z.string(), z.unknown()).default({}),
  redirect_url: z.url().optional(),
  expires_in_days: z.number().int().min(1).max(365).nullish(),
  // Ignored, because the emulator does not send a mail for an invitation. The response contains the link.
  notify: z.boolean().nullish(),
  ignore_existing: z.boolean().nullish(),
});

/** Returns the Backend API routes for sign-in tokens, testing tokens and invitations. */
export function ticketRoutes(instance: Instance): Routes {
  const { tickets } = instance.store;
  return {
    'POST /v1/sign_in_tokens': ({ body }) => {
      const { user_id, expires_in_seconds } = parse(CreateSignInToken, body);
      const { id: userId } = requireUser(instance, user_id);
      const lifetime = expires_in_seconds ? expires_in_seconds * 1000 : DEFAULT_DAYS * DAY;
      const token = { ...newTicket(instance, 'sit', lifetime), kind: 'sign_in_token', userId } as const;
      return { body: signInTokenResource(tickets.put(token)) };
    },
    'POST /v1/sign_in_tokens/:id/revoke': ({ id }) => ({
      body: signInTokenResource(revokeTicket(instance, 'sign_in_token', id)),
    }),
    // The Frontend API ignores testing tokens, because the emulator has no CAPTCHA that they could bypass.
    'POST /v1/testing_tokens': () => {
      const now = Math.floor(instance.clock.now() / 1000);
      const token = `${now}-${newId('c')}`;
      return { body: { object: 'testing_token', token, expires_at: now + TESTING_TOKEN_SECONDS } };
    },
    'POST /v1/invitations': ({ url, body }) => {
      const input = parse(CreateInvitation, body);
      if (!input.ignore_existing) requireUninvited(instance, input.email_address);
      const invitation = tickets.put({
        ...newTicket(instance, 'inv', (input.expires_in_days ?? DEFAULT_DAYS) * DAY),
        kind: 'invitation',
        email: input.email_address,
        publicMetadata: input.public_metadata,
        redirectUrl: input.redirect_url ?? null,
      });
      return { body: invitationResource(instance, invitation, url) };
    },
    'GET /v1/invitations': ({ url }) => {
      const query = url.searchParams;
      const wanted = query.get('status');
      const invitations = ticketsOf(instance, 'invitation')
        .map((invitation) => invitationResource(instance, invitation, url))
        .filter(({ status }) => (wanted ? status === wanted : status !== 'revoked'));
      const page = pageOf(url, invitations.reverse());
      return { body: query.has('paginated') ? page : page.data };
    },
    'POST /v1/invitations/:id/revoke': ({ id, url }) => ({
      body: invitationResource(instance, revokeTicket(instance, 'invitation', id), url),
    }),
  };
}

function requireUninvited(instance: Instance, email: string): void {
  requireFree(instance, email, 'email_address');
  const isInvited = ticketsOf(instance, 'invitation').some(
    (each) => each.email === email && each.status === 'pending' && each.expireAt > instance.clock.now(),
  );
  if (!isInvited) return;
  const message = 'This email address already has a pending invitation.';
  throw new ApiError(400, 'duplicate_record', message, 'email_address');
}
