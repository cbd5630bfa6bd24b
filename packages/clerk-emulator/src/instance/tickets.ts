import { ApiError, requireFound } from './api-error';
import { type Ticket, Verification, type WaitlistEntry } from './data';
import { newId, newRow } from './ids';
import type { Instance } from './instance';

type Kind = Ticket['kind'];
type TicketOf<Wanted extends Kind> = Extract<Ticket, { readonly kind: Wanted }>;

/** The name of each kind of ticket, and Clerk's codes for a ticket that is no longer pending. */
const KINDS = {
  sign_in_token: {
    name: 'sign-in token',
    accepted: 'sign_in_token_already_used_code',
    revoked: 'sign_in_token_revoked_code',
  },
  invitation: {
    name: 'invitation',
    accepted: 'invitation_already_accepted',
    revoked: 'revoked_invitation',
  },
} as const;

/** Returns the fields that all kinds of new tickets share. The ticket expires after `lifetime` milliseconds. */
export function newTicket(instance: Instance, prefix: string, lifetime: number) {
  const row = newRow(instance, prefix);
  const expireAt = row.createdAt + lifetime;
  return { ...row, ticket: newId('ticket'), status: 'pending', expireAt } as const;
}

/** Returns the tickets of a kind, oldest first. */
export function ticketsOf<Wanted extends Kind>({ store }: Instance, kind: Wanted): TicketOf<Wanted>[] {
  return store.tickets.all().filter((ticket): ticket is TicketOf<Wanted> => ticket.kind === kind);
}

/** Returns the ticket with a secret. Throws Clerk's error if the ticket is unknown, used, revoked or expired. */
export function requireTicket<Wanted extends Kind>(
  instance: Instance,
  kind: Wanted,
  secret: string,
): TicketOf<Wanted> {
  const invalid = (code: string, message: string) => new ApiError(400, code, message, 'ticket');
  const found = ticketsOf(instance, kind).find(({ ticket }) => ticket === secret);
  if (found === undefined) throw invalid('ticket_invalid_code', 'This ticket is invalid.');
  const { status, expireAt } = found;
  if (status !== 'pending') {
    throw invalid(KINDS[kind][status], `This ${KINDS[kind].name} has already been ${status}.`);
  }
  if (expireAt <= instance.clock.now()) throw invalid('ticket_expired_code', 'This ticket has expired.');
  return found;
}

/** Sets the status of a ticket. */
export function closeTicket<Closed extends Ticket>(
  { store, clock }: Instance,
  ticket: Closed,
  status: 'accepted' | 'revoked',
): Closed {
  return store.tickets.put({ ...ticket, status, updatedAt: clock.now() });
}

/** Revokes a ticket. Throws a 404 for an unknown id, and a 400 if the ticket is no longer pending. */
export function revokeTicket<Wanted extends Kind>(
  instance: Instance,
  kind: Wanted,
  id: string,
): TicketOf<Wanted> {
  const { name } = KINDS[kind];
  const found = ticketsOf(instance, kind).find((each) => each.id === id);
  const ticket = requireFound(found, `The ${name} ${id}`);
  if (ticket.status === 'pending') return closeTicket(instance, ticket, 'revoked');
  const { status } = ticket;
  const code =
    kind === 'invitation' ? `invitation_already_${status}` : 'sign_in_token_cannot_be_revoked_code';
  throw new ApiError(400, code, `The ${name} has already been ${status}.`);
}

/** Returns a completed verification for a valid ticket. */
export function verifiedByTicket({ expireAt }: Ticket): Verification {
  return Verification.parse({ strategy: 'ticket', status: 'verified', expireAt });
}

/** Returns the entry of an address on the waitlist. Creates it unless there is one. */
export function joinWaitlist(instance: Instance, email: string): WaitlistEntry {
  const { waitlistEntries } = instance.store;
  const row = { ...newRow(instance, 'wle'), email, status: 'pending', invitationId: null } as const;
  return waitlistEntries.find((entry) => entry.email === email) ?? waitlistEntries.put(row);
}
