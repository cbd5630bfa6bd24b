import { z } from 'zod';
import { type ApiRequest, parse, type Routes } from '../http';
import { requireFree, requireUser } from '../instance/accounts';
import { ApiError } from '../instance/api-error';
import type { Invitation, SignInToken } from '../instance/data';
import { EmailAddress } from '../instance/identifiers';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { Metadata } from '../instance/metadata';
import { requireMembership, requireOrganization } from '../instance/organizations';
import { invitationResource, invitationStatus, signInTokenResource } from '../instance/resources';
import { newTicket, revokeTicket, ticketsOf } from '../instance/tickets';
import { describeList, optionalPage } from './lists';

const DAY = 24 * 60 * 60 * 1000;
const DEFAULT_DAYS = 30;
/** The lifetime of an invitation. */
export const Days = z.number().int().min(1).max(365).nullish();
const TESTING_TOKEN_SECONDS = 60 * 60;

const CreateSignInToken = z.strictObject({
  user_id: z.string(),
  org_id: z.string().nullish(),
  expires_in_seconds: z.number().int().min(1).nullish(),
});
const CreateActorToken = z.strictObject({
  user_id: z.string(),
  actor: z.looseObject({ sub: z.string() }),
  expires_in_seconds: z.int().positive().default(3600),
  session_max_duration_in_seconds: z.int().positive().default(1800),
});
const CreateInvitation = z.strictObject({
  email_address: EmailAddress,
  public_metadata: Metadata.nullish(),
  redirect_url: z.url().nullish(),
  expires_in_days: Days,
  ignore_existing: z.boolean().nullish(),
  // Without effect, because the emulator does not send a mail for an invitation. The response contains the link.
  notify: z.boolean().nullish(),
  template_slug: z.enum(['invitation', 'waitlist_invitation']).nullish(),
});
const CreateInvitations = z.object({ items: z.array(CreateInvitation).max(10) });

/** Returns the Backend API routes for the tickets that sign a user in: sign-in tokens and actor tokens. */
export function signInTokenRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const signIn = (url: URL, fields: Omit<SignInToken, 'kind'>) =>
    signInTokenResource(instance.store.tickets.put({ ...fields, kind: 'sign_in_token' as const }), url);
  const revoke = ({ id, url }: ApiRequest) =>
    signInTokenResource(revokeTicket(instance, 'sign_in_token', id), url);
  return {
    'POST /v1/sign_in_tokens': ({ url, body }) => {
      const { user_id, org_id, expires_in_seconds: seconds } = parse(CreateSignInToken, body);
      const userId = requireUser(instance, user_id).id;
      if (org_id) requireMembership(instance, requireOrganization(instance, org_id), userId);
      const ticket = newTicket(instance, 'sit', seconds ? seconds * 1000 : DEFAULT_DAYS * DAY);
      return signIn(url, { ...ticket, userId, organizationId: org_id ?? undefined });
    },
    'POST /v1/sign_in_tokens/:id/revoke': revoke,
    'POST /v1/actor_tokens': ({ url, body }) => {
      const { user_id, actor, ...input } = parse(CreateActorToken, body);
      const userId = requireUser(instance, user_id, 'user_id').id;
      const ticket = newTicket(instance, 'act', input.expires_in_seconds * 1000);
      return signIn(url, { ...ticket, userId, actor, sessionSeconds: input.session_max_duration_in_seconds });
    },
    'POST /v1/actor_tokens/:id/revoke': revoke,
    // The Frontend API ignores testing tokens, because the emulator has no CAPTCHA that they could bypass.
    'POST /v1/testing_tokens': () => {
      const now = Math.floor(instance.clock.now() / 1000);
      const token = `${now}-${newId('c')}`;
      return { object: 'testing_token', token, expires_at: now + TESTING_TOKEN_SECONDS };
    },
  };
}

/** Invites all addresses to the instance, or none if one of them is taken or has a pending invitation. */
export function invite(
  instance: Instance,
  inputs: readonly z.input<typeof CreateInvitation>[],
): Invitation[] {
  const pending = ticketsOf(instance, 'invitation').filter(
    (each) => invitationStatus(instance, each) === 'pending',
  );
  const invited = new Set(pending.map(({ email }) => email));
  for (const { email_address: email } of inputs.filter(({ ignore_existing }) => !ignore_existing)) {
    requireFree(instance, email, 'email_address');
    const message = 'This email address already has a pending invitation.';
    if (invited.has(email)) throw new ApiError(400, 'duplicate_record', message, 'email_address');
    invited.add(email);
  }
  return inputs.map((input) =>
    instance.store.tickets.put({
      ...newTicket(instance, 'inv', (input.expires_in_days ?? DEFAULT_DAYS) * DAY),
      kind: 'invitation',
      email: input.email_address,
      publicMetadata: input.public_metadata ?? {},
      redirectUrl: input.redirect_url ?? null,
    }),
  );
}

/** Returns the Backend API routes for invitations to the instance. */
export function invitationRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const invitations = () => ticketsOf(instance, 'invitation');
  const create = (url: URL, inputs: readonly z.output<typeof CreateInvitation>[]) =>
    invite(instance, inputs).map((invitation) => invitationResource(instance, invitation, url));
  const selectInvitations = describeList<Invitation>({
    fields: {
      status: (row) => [invitationStatus(instance, row)],
      query: ({ email, id }) => [email, id],
      email_address: ({ email }) => [email],
      expires_at: ({ expireAt }) => [expireAt],
    },
    filters: 'status query',
    orders: 'created_at email_address expires_at',
    others: 'limit offset paginated',
  });
  return {
    'POST /v1/invitations': ({ url, body }) => create(url, [parse(CreateInvitation, body)])[0],
    'POST /v1/invitations/bulk': ({ url, body }) => create(url, parse(CreateInvitations, body).items),
    'GET /v1/invitations': ({ url }) => {
      const isShown = ({ status }: Invitation) => url.searchParams.has('status') || status !== 'revoked';
      const selected = selectInvitations(invitations(), url).filter(isShown);
      return optionalPage(url, selected, (row) => invitationResource(instance, row, url));
    },
    'POST /v1/invitations/:id/revoke': ({ id, url }) =>
      invitationResource(instance, revokeTicket(instance, 'invitation', id), url),
  };
}
