import { z } from 'zod';
import { type ApiRequest, pageOf, parse, type Routes } from '../http';
import { ApiError, requireFound } from '../instance/api-error';
import type { WaitlistEntry } from '../instance/data';
import { EmailAddress } from '../instance/identifiers';
import type { Instance } from '../instance/instance';
import { deletedResource } from '../instance/organizations';
import { datedResource, invitationResource } from '../instance/resources';
import { joinWaitlist, ticketsOf } from '../instance/tickets';
import { describeList } from './lists';
import { invite } from './tickets';

// Without effect: `notify`. The emulator mails no confirmation.
const Entry = z.strictObject({ email_address: EmailAddress, notify: z.boolean().nullish() });
const Entries = z.object({ items: z.array(Entry).min(1).max(50) });
const Invite = z.strictObject({ ignore_existing: z.boolean().nullish() });

/** Returns the Backend API routes for the waitlist. An entry is completed by the sign-up with its invitation. */
export function waitlistRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const { waitlistEntries } = instance.store;
  const invitationOf = ({ invitationId }: WaitlistEntry) =>
    ticketsOf(instance, 'invitation').find(({ id }) => id === invitationId);
  const statusOf = (entry: WaitlistEntry) =>
    invitationOf(entry)?.status === 'accepted' ? 'completed' : entry.status;
  const shown = (entry: WaitlistEntry, url: URL) => {
    const invitation = invitationOf(entry);
    return {
      object: 'waitlist_entry',
      ...datedResource(entry),
      email_address: entry.email,
      status: statusOf(entry),
      is_locked: false,
      invitation: invitation ? invitationResource(instance, invitation, url) : null,
    };
  };
  const join = (url: URL, { email_address }: z.output<typeof Entry>) =>
    shown(joinWaitlist(instance, email_address), url);
  const requirePending = (id: string) => {
    const entry = requireFound(waitlistEntries.get(id), `Waitlist entry ${id}`);
    if (entry.status === 'pending') return entry;
    throw new ApiError(409, 'waitlist_entry_not_pending', `The entry has already been ${entry.status}.`);
  };
  const close = ({ id, url }: ApiRequest, changes: Pick<WaitlistEntry, 'status' | 'invitationId'>) =>
    shown(waitlistEntries.put({ ...requirePending(id), ...changes, updatedAt: instance.clock.now() }), url);
  const select = describeList<WaitlistEntry>({
    fields: {
      query: ({ id, email }) => [id, email],
      status: (entry) => [statusOf(entry)],
      email_address: ({ email }) => [email],
      invited_at: ({ updatedAt }) => [updatedAt],
    },
    filters: 'query status',
    orders: 'created_at email_address invited_at',
  });
  return {
    'GET /v1/waitlist_entries': ({ url }) =>
      pageOf(url, select(waitlistEntries.all(), url), (entry) => shown(entry, url)),
    'POST /v1/waitlist_entries': ({ url, body }) => join(url, parse(Entry, body)),
    'POST /v1/waitlist_entries/bulk': ({ url, body }) =>
      parse(Entries, body).items.map((each) => join(url, each)),
    'DELETE /v1/waitlist_entries/:id': ({ id }) => {
      waitlistEntries.delete(requirePending(id).id);
      return deletedResource(id, 'waitlist_entry');
    },
    'POST /v1/waitlist_entries/:id/invite': (request) => {
      const { email: email_address } = requirePending(request.id);
      const [invitation] = invite(instance, [{ ...parse(Invite, request.body), email_address }]);
      return close(request, { status: 'invited', invitationId: invitation?.id ?? null });
    },
    'POST /v1/waitlist_entries/:id/reject': (request) =>
      close(request, { status: 'rejected', invitationId: null }),
  };
}
