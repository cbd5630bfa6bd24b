import type { Invitation, SignInToken, Verification } from './data';
import { ApiError } from './error';
import type { Instance } from './instance';

const invalid = () => new ApiError(400, 'ticket_invalid_code', 'This ticket is invalid.', 'ticket');

/**
 * Returns the sign-in token of a ticket. A ticket is the secret string of a sign-in token or of an invitation. Throws Clerk's
 * error if the ticket is unknown, used, revoked or expired.
 */
export function requireSignInToken(instance: Instance, ticket: string): SignInToken {
  const token = instance.store.signInTokens.find((each) => each.ticket === ticket);
  if (token === undefined) throw invalid();
  if (token.status === 'accepted') {
    const message = 'This sign-in token has already been used.';
    throw new ApiError(400, 'sign_in_token_already_used_code', message, 'ticket');
  }
  if (token.status === 'revoked') {
    const message = 'This sign-in token has been revoked.';
    throw new ApiError(400, 'sign_in_token_revoked_code', message, 'ticket');
  }
  requireUnexpired(instance, token.expireAt);
  return token;
}

/** Returns the invitation of a ticket. Throws Clerk's error if the ticket is unknown, used, revoked or expired. */
export function requireInvitation(instance: Instance, ticket: string): Invitation {
  const invitation = instance.store.invitations.find((each) => each.ticket === ticket);
  if (invitation === undefined) throw invalid();
  if (invitation.status === 'accepted') {
    const message = 'This invitation has already been accepted.';
    throw new ApiError(400, 'invitation_already_accepted', message, 'ticket');
  }
  if (invitation.status === 'revoked') {
    const message = 'This invitation has been revoked.';
    throw new ApiError(400, 'revoked_invitation', message, 'ticket');
  }
  requireUnexpired(instance, invitation.expireAt);
  return invitation;
}

/** Returns a completed verification for a valid ticket. */
export function verifiedByTicket({ expireAt }: SignInToken | Invitation): Verification {
  return { strategy: 'ticket', status: 'verified', code: null, attempts: 0, expireAt };
}

function requireUnexpired({ clock }: Instance, expireAt: number): void {
  if (expireAt > clock.now()) return;
  const message = 'This ticket has expired.';
  throw new ApiError(400, 'ticket_expired_code', message, 'ticket');
}
