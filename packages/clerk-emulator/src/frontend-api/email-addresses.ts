import { z } from 'zod';
import { parse, type Routes } from '../http';
import { EmailAddress, requireFree, updateUser } from '../instance/accounts';
import type { User, Verification } from '../instance/data';
import { ApiError, notFound } from '../instance/error';
import { isVerified } from '../instance/identifiers';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { checkCode, mailCode, UNSENT } from '../instance/mail';
import { emailAddressResources } from '../instance/resources';
import { type BrowserRequest, requireSignedIn } from './browser';

const NewAddress = z.object({ email_address: EmailAddress });
const Prepare = z.object({ strategy: z.literal('email_code') });
const Code = z.object({ code: z.string() });

/** Returns the routes with which a user adds an address, verifies it by a mailed code and removes an address. */
export function emailAddressRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const { users } = instance.store;
  const find = (request: BrowserRequest) => {
    const { user } = requireSignedIn(instance, request);
    const email = user.emails.find(({ id }) => id === request.id);
    if (email === undefined) throw notFound('The email address');
    const emails = (verification: Verification) =>
      user.emails.map((each) => (each === email ? { ...email, verification } : each));
    return {
      user,
      email,
      withVerification: (verification: Verification) => ({ emails: emails(verification) }),
    };
  };
  const shown = (user: User, id: string) => emailAddressResources(user).find((each) => each['id'] === id);
  return {
    'POST /v1/me/email_addresses': (request) => {
      const { user } = requireSignedIn(instance, request);
      const { email_address: value } = parse(NewAddress, request.body);
      requireFree(instance, value, 'email_address');
      const email = { id: newId('idn'), value, verification: UNSENT };
      return shown(updateUser(instance, user, { emails: [...user.emails, email] }), email.id);
    },
    'GET /v1/me/email_addresses/:id': (request) => shown(find(request).user, request.id),
    'POST /v1/me/email_addresses/:id/prepare_verification': (request) => {
      const { user, email, withVerification } = find(request);
      const { strategy } = parse(Prepare, request.body);
      const verification = mailCode(instance, email.value, 'new address', strategy);
      return shown(users.put({ ...user, ...withVerification(verification) }), request.id);
    },
    'POST /v1/me/email_addresses/:id/attempt_verification': (request) => {
      const { user, email, withVerification } = find(request);
      const { code } = parse(Code, request.body);
      requireFree(instance, email.value, 'email_address');
      const verification = checkCode(instance, email.verification ?? null, code, (failed) =>
        users.put({ ...user, ...withVerification(failed) }),
      );
      return shown(updateUser(instance, user, withVerification(verification)), request.id);
    },
    'DELETE /v1/me/email_addresses/:id': (request) => {
      const { user, email } = find(request);
      const emails = user.emails
        .filter(({ id }) => id !== email.id)
        .sort((a, b) => +isVerified(b) - +isVerified(a));
      if (!emails.some(isVerified)) {
        const message = 'You cannot delete your last identification.';
        throw new ApiError(400, 'last_identification_deletion_failed', message);
      }
      updateUser(instance, user, { emails });
      return { id: email.id, object: 'email_address', deleted: true };
    },
  };
}
