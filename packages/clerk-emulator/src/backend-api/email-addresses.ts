import { z } from 'zod';
import { type ApiRequest, parse, type Routes } from '../http';
import { EmailAddress, requireUser, updateUser } from '../instance/accounts';
import { requireFound } from '../instance/api-error';
import type { User } from '../instance/data';
import { deleteEmail, emailAddressResource, withEmail, withVerification } from '../instance/email-addresses';
import { withPrimary } from '../instance/identifiers';
import type { Instance } from '../instance/instance';
import { UNSENT } from '../instance/mail';

const Change = z.strictObject({
  verified: z.boolean().nullish(),
  primary: z.boolean().nullish(),
  // Without effect, because the emulator does not notify users.
  notify_primary_email_address_changed: z.boolean().nullish(),
});
const NewAddress = Change.extend({ user_id: z.string(), email_address: EmailAddress });

/** Returns the Backend API routes for the e-mail addresses of users. */
export function emailAddressRoutes(instance: Instance): Routes<ApiRequest, unknown> {
  const find = (id: string) => {
    const user = instance.store.users.find(({ emails }) => emails.some((email) => email.id === id));
    return requireFound(user, `The email address ${id}`);
  };
  const change = (before: User, id: string, { verified, primary }: z.output<typeof Change>) => {
    const verification = verified ? undefined : UNSENT;
    const user = typeof verified === 'boolean' ? withVerification(before, id, verification) : before;
    const emails = primary ? withPrimary(user.emails, id, 'primary') : user.emails;
    return emailAddressResource(updateUser(instance, user, { emails }), id);
  };
  return {
    'POST /v1/email_addresses': ({ body }) => {
      const { user_id, email_address, ...input } = parse(NewAddress, body);
      const { user, id } = withEmail(instance, requireUser(instance, user_id), email_address);
      return change(user, id, input);
    },
    'GET /v1/email_addresses/:id': ({ id }) => emailAddressResource(find(id), id),
    'PATCH /v1/email_addresses/:id': ({ id, body }) => change(find(id), id, parse(Change, body)),
    'DELETE /v1/email_addresses/:id': ({ id }) => deleteEmail(instance, find(id), id),
  };
}
