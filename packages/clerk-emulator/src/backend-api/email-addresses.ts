import { z } from 'zod';
import { parse, type Routes } from '../http';
import { EmailAddress, requireFree, requireUser, updateUser } from '../instance/accounts';
import type { User } from '../instance/data';
import { ApiError, notFound } from '../instance/error';
import { isVerified } from '../instance/identifiers';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { UNSENT } from '../instance/mail';
import { deletedResource } from '../instance/organizations';
import { emailAddressResources } from '../instance/resources';

const Change = z.strictObject({
  verified: z.boolean().nullish(),
  primary: z.boolean().nullish(),
  // Without effect, because the emulator does not notify users.
  notify_primary_email_address_changed: z.boolean().nullish(),
});
const NewAddress = Change.extend({ user_id: z.string(), email_address: EmailAddress });

/** Returns the Backend API routes for the e-mail addresses of users. */
export function emailAddressRoutes(instance: Instance): Routes {
  const find = (id: string) => {
    const user = instance.store.users.find(({ emails }) => emails.some((email) => email.id === id));
    if (user === undefined) throw notFound(`The email address ${id}`);
    return user;
  };
  const shown = (user: User, id: string) => ({
    body: emailAddressResources(user).find((resource) => resource['id'] === id),
  });
  const change = (user: User, id: string, { verified, primary }: z.output<typeof Change>) => {
    const verification = verified === false ? { verification: UNSENT } : {};
    const emails = user.emails.map((email) =>
      email.id === id && typeof verified === 'boolean' ? { id, value: email.value, ...verification } : email,
    );
    const ordered = primary ? withPrimary(emails, id, 'primary') : emails;
    return shown(updateUser(instance, user, { emails: ordered }), id);
  };
  return {
    'POST /v1/email_addresses': ({ body }) => {
      const { user_id, email_address: value, ...input } = parse(NewAddress, body);
      const user = requireUser(instance, user_id);
      requireFree(instance, value, 'email_address');
      const id = newId('idn');
      const emails = [...user.emails, { id, value }];
      return change({ ...user, emails }, id, { ...input, verified: input.verified ?? false });
    },
    'GET /v1/email_addresses/:id': ({ id }) => shown(find(id), id),
    'PATCH /v1/email_addresses/:id': ({ id, body }) => change(find(id), id, parse(Change, body)),
    'DELETE /v1/email_addresses/:id': ({ id }) => {
      const user = find(id);
      updateUser(instance, user, { emails: user.emails.filter((email) => email.id !== id) });
      return { body: deletedResource(id, 'email_address') };
    },
  };
}

/** Returns identifiers with another one in the first place, the primary one. Throws a 422 unless it is verified. */
export function withPrimary<Identifier extends User['emails'][number]>(
  identifiers: readonly Identifier[],
  id: string,
  parameter: string,
): Identifier[] {
  const primary = identifiers.find((each) => each.id === id && isVerified(each));
  if (primary) return [primary, ...identifiers.filter((each) => each !== primary)];
  const message = `${parameter} is not a verified identifier of the user.`;
  throw new ApiError(422, 'form_param_format_invalid', message, parameter);
}
