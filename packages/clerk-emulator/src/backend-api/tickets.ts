import { z } from 'zod';
import { parse, type Routes } from '../http';
import { EmailAddress, requireFree, requireUser } from '../instance/accounts';
import type { Invitation, SignInToken } from '../instance/data';
import { ApiError, notFound } from '../instance/error';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { invitationResource, signInTokenResource } from '../instance/resources';
import { Page } from './page';

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

/**
 * Returns the Backend API routes for sign-in tokens, testing tokens and invitations. A sign-in token signs a user in once. An
 * invitation lets its recipient sign up. A ticket is the secret string of a sign-in token or of an invitation.
 */
export function ticketRoutes(instance: Instance): Routes {
  const { signInTokens, invitations } = instance.store;
  return {
    'POST /v1/sign_in_tokens': ({ body }) => {
      const { user_id, expires_in_seconds } = parse(CreateSignInToken, body);
      const now = instance.clock.now();
      const lifetime =
        typeof expires_in_seconds === 'number' ? expires_in_seconds * 1000 : DEFAULT_DAYS * DAY;
      const token = signInTokens.put({
        id: newId('sit'),
        userId: requireUser(instance, user_id).id,
        ticket: newId('ticket'),
        status: 'pending',
        expireAt: now + lifetime,
        createdAt: now,
        updatedAt: now,
      });
      return { body: signInTokenResource(token) };
    },
    'POST /v1/sign_in_tokens/:id/revoke': ({ id }) => {
      const token = requirePendingToken(instance, id);
      const revoked: SignInToken = { ...token, status: 'revoked', updatedAt: instance.clock.now() };
      return { body: signInTokenResource(signInTokens.put(revoked)) };
    },
    // The Frontend API ignores testing tokens, because the emulator has no CAPTCHA that they could bypass.
    'POST /v1/testing_tokens': () => {
      const now = Math.floor(instance.clock.now() / 1000);
      const token = `${now}-${newId('c')}`;
      return { body: { object: 'testing_token', token, expires_at: now + TESTING_TOKEN_SECONDS } };
    },
    'POST /v1/invitations': ({ url, body }) => {
      const input = parse(CreateInvitation, body);
      if (!input.ignore_existing) requireUninvited(instance, input.email_address);
      const now = instance.clock.now();
      const invitation = invitations.put({
        id: newId('inv'),
        email: input.email_address,
        publicMetadata: input.public_metadata,
        redirectUrl: input.redirect_url ?? null,
        ticket: newId('ticket'),
        status: 'pending',
        expireAt: now + (input.expires_in_days ?? DEFAULT_DAYS) * DAY,
        createdAt: now,
        updatedAt: now,
      });
      return { body: invitationResource(invitation, { origin: url.origin, now }) };
    },
    'GET /v1/invitations': ({ url }) => {
      const query = url.searchParams;
      const { limit, offset } = parse(Page, Object.fromEntries(query));
      const format = { origin: url.origin, now: instance.clock.now() };
      const rows = invitations.all().map((invitation) => invitationResource(invitation, format));
      const wanted = query.get('status');
      const selected = rows.filter(({ status }) => (wanted ? status === wanted : status !== 'revoked'));
      const page = selected.reverse().slice(offset, offset + limit);
      return { body: query.has('paginated') ? { data: page, total_count: selected.length } : page };
    },
    'POST /v1/invitations/:id/revoke': ({ id, url }) => {
      const now = instance.clock.now();
      const invitation = requirePendingInvitation(instance, id);
      const revoked: Invitation = { ...invitation, status: 'revoked', updatedAt: now };
      return { body: invitationResource(invitations.put(revoked), { origin: url.origin, now }) };
    },
  };
}

function requirePendingToken({ store }: Instance, id: string): SignInToken {
  const token = store.signInTokens.get(id);
  if (token === undefined) throw notFound(`Sign-in token ${id}`);
  if (token.status === 'pending') return token;
  const message = `This sign-in token cannot be revoked because its status is ${token.status}.`;
  throw new ApiError(400, 'sign_in_token_cannot_be_revoked_code', message);
}

function requirePendingInvitation({ store }: Instance, id: string): Invitation {
  const invitation = store.invitations.get(id);
  if (invitation === undefined) throw notFound(`Invitation ${id}`);
  if (invitation.status === 'pending') return invitation;
  throw new ApiError(
    400,
    `invitation_already_${invitation.status}`,
    `The invitation is already ${invitation.status}.`,
  );
}

function requireUninvited(instance: Instance, email: string): void {
  requireFree(instance, email, 'email_address');
  const isOpen = (each: Invitation) => each.status === 'pending' && each.expireAt > instance.clock.now();
  if (!instance.store.invitations.find((each) => each.email === email && isOpen(each))) return;
  const message = 'This email address already has a pending invitation.';
  throw new ApiError(400, 'duplicate_record', message, 'email_address');
}
