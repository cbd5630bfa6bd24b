import { z } from 'zod';
import { parse, type Routes } from '../http';
import { EmailAddress, requireFree, updateUser } from '../instance/accounts';
import { ApiError, requireFound } from '../instance/api-error';
import { deleteEmail, emailAddressResource, withEmail, withVerification } from '../instance/email-addresses';
import { isVerified } from '../instance/identifiers';
import type { Instance } from '../instance/instance';
import { checkCode, mailCode } from '../instance/mail';
import { type BrowserRequest, requireSignedIn } from './browser';

const NewAddress = z.object({ email_address: EmailAddress });
const Code = z.object({ code: z.string() });

/** Returns the routes with which a user adds an address, verifies it by a mailed code and removes an address. */
export function emailAddressRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const { users } = instance.store;
  const own = (request: BrowserRequest) => requireSignedIn(instance, request).user;
  const find = (request: BrowserRequest) => {
    const user = own(request);
    const found = user.emails.find(({ id }) => id === request.id);
    return { user, email: requireFound(found, 'The email address') };
  };
  return {
    'POST /v1/me/email_addresses': (request) => {
      const { email_address } = parse(NewAddress, request.body);
      const { user, id } = withEmail(instance, own(request), email_address);
      return emailAddressResource(updateUser(instance, user, {}), id);
    },
    'GET /v1/me/email_addresses/:id': (request) => emailAddressResource(own(request), request.id),
    'POST /v1/me/email_addresses/:id/prepare_verification': (request) => {
      const { user, email } = find(request);
      const verification = mailCode(instance, email.value, 'new address', 'email_code');
      return emailAddressResource(users.put(withVerification(user, email.id, verification)), email.id);
    },
    'POST /v1/me/email_addresses/:id/attempt_verification': (request) => {
      const { user, email } = find(request);
      const { code } = parse(Code, request.body);
      requireFree(instance, email.value, 'email_address');
      const verification = checkCode(instance, email.verification ?? null, code, (failed) =>
        users.put(withVerification(user, email.id, failed)),
      );
      const verified = updateUser(instance, withVerification(user, email.id, verification), {});
      return emailAddressResource(verified, email.id);
    },
    'DELETE /v1/me/email_addresses/:id': (request) => {
      const { user, email } = find(request);
      if (user.emails.some((each) => each !== email && isVerified(each)))
        return deleteEmail(instance, user, email.id);
      const message = 'You cannot delete your last identification.';
      throw new ApiError(400, 'last_identification_deletion_failed', message);
    },
  };
}
