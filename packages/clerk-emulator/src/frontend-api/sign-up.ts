import { z } from 'zod';
import { parse, type Routes, wrapHandlers } from '../http';
import {
  acceptPassword,
  createSession,
  createUser,
  EmailAddress,
  requireFree,
  requireUsername,
} from '../instance/accounts';
import { ApiError } from '../instance/api-error';
import { SignUp } from '../instance/data';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { checkCode, mailCode } from '../instance/mail';
import { missingFields, signUpResource } from '../instance/resources';
import { closeTicket, requireTicket, ticketsOf, verifiedByTicket } from '../instance/tickets';
import { ATTEMPT_LIFE, type BrowserRequest, requireOwnAttempt, requireSignedOut } from './browser';
import { requireSettings } from './settings';

/** Treats an empty field as missing, because the SDK sends all fields of its form. */
const optional = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (value === '' ? undefined : value), schema.optional());

/** Metadata in a form. */
export const UnsafeMetadata = z
  .string()
  .transform((text, context) => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue('is not JSON');
      return z.NEVER;
    }
  })
  .pipe(z.record(z.string(), z.unknown()));

const Fields = z.object({
  email_address: optional(EmailAddress),
  username: optional(z.string()),
  password: optional(z.string()),
  first_name: optional(z.string()),
  last_name: optional(z.string()),
  unsafe_metadata: optional(UnsafeMetadata),
  ticket: optional(z.string()),
});
const Code = z.object({ code: z.string() });

/**
 * Returns the routes that sign users up with an e-mail address and a password. If the instance verifies addresses, a user
 * proves the address with a mailed code or with the ticket (the secret string) of an invitation.
 */
export function signUpRoutes(instance: Instance): Routes<BrowserRequest, Record<string, unknown>> {
  const { clients, signUps } = instance.store;
  const routes: Routes<BrowserRequest, SignUp> = {
    'POST /v1/client/sign_ups': ({ body, browser }) => {
      const client = browser.establish();
      requireSignedOut(instance, client);
      const abandonAt = instance.clock.now() + ATTEMPT_LIFE;
      const begun = SignUp.parse({ id: newId('sua'), clientId: client.id, abandonAt });
      const signUp = enter(instance, begun, body);
      if (client.signUpId !== null) signUps.delete(client.signUpId);
      clients.put({ ...client, signUpId: signUp.id });
      return completeIfReady(instance, signUp);
    },
    'PATCH /v1/client/sign_ups/:id': (request) => {
      const signUp = enter(instance, openSignUp(instance, request), request.body);
      return completeIfReady(instance, signUp);
    },
    'GET /v1/client/sign_ups/:id': (request) => requireOwnAttempt(instance, signUps, request),
    'POST /v1/client/sign_ups/:id/prepare_verification': (request) => {
      const signUp = openSignUp(instance, request);
      if (signUp.email === null) {
        throw new ApiError(422, 'form_param_missing', 'email_address must be included.', 'email_address');
      }
      const verification = mailCode(instance, signUp.email, 'sign-up', 'email_code');
      return signUps.put({ ...signUp, verification });
    },
    'POST /v1/client/sign_ups/:id/attempt_verification': (request) => {
      const signUp = openSignUp(instance, request);
      const { code } = parse(Code, request.body);
      const verification = checkCode(instance, signUp.verification, code, (failed) =>
        signUps.put({ ...signUp, verification: failed }),
      );
      return completeIfReady(instance, signUps.put({ ...signUp, verification }));
    },
  };
  return wrapHandlers(routes, (handler) => (request) => signUpResource(handler(request), instance));
}

/**
 * Saves fields in a sign-up. A new address discards the proof of the previous address. The ticket of an invitation sets the
 * address and proves it. Throws Clerk's error for an invalid field or ticket.
 */
function enter(instance: Instance, signUp: SignUp, body: Readonly<Record<string, unknown>>): SignUp {
  requireSettings(instance, body);
  const fields = parse(Fields, body);
  const invitation =
    fields.ticket === undefined ? undefined : requireTicket(instance, 'invitation', fields.ticket);
  const email = invitation?.email ?? fields.email_address ?? signUp.email;
  const isUnchanged = email === signUp.email;
  if (email !== null) requireFree(instance, email, 'email_address');
  if (fields.username !== undefined) {
    requireUsername(fields.username);
    requireFree(instance, fields.username, 'username');
  }
  return instance.store.signUps.put({
    ...signUp,
    email,
    username: fields.username ?? signUp.username,
    password: fields.password === undefined ? signUp.password : acceptPassword(fields.password, 'password'),
    firstName: fields.first_name ?? signUp.firstName,
    lastName: fields.last_name ?? signUp.lastName,
    unsafeMetadata: fields.unsafe_metadata ?? signUp.unsafeMetadata,
    verification: invitation ? verifiedByTicket(invitation) : isUnchanged ? signUp.verification : null,
    invitationId: invitation?.id ?? (isUnchanged ? signUp.invitationId : null),
  });
}

/**
 * Creates the user and a session if the sign-up has all required fields and the address is verified, unless the instance does
 * not verify addresses.
 */
function completeIfReady(instance: Instance, signUp: SignUp): SignUp {
  const { email, username, password, firstName, lastName, unsafeMetadata, verification } = signUp;
  const isVerified = !instance.settings.verifyEmailAtSignUp || verification?.status === 'verified';
  if (email === null || missingFields(signUp).length > 0 || !isVerified) return signUp;
  const invitation = ticketsOf(instance, 'invitation').find(({ id }) => id === signUp.invitationId);
  if (invitation) closeTicket(instance, invitation, 'accepted');
  const publicMetadata = invitation?.publicMetadata ?? {};
  const profile = { username, password, firstName, lastName, unsafeMetadata, publicMetadata };
  const user = createUser(instance, { emails: [email], ...profile });
  const session = createSession(instance, user, signUp.clientId);
  return instance.store.signUps.put({
    ...signUp,
    status: 'complete',
    createdUserId: user.id,
    createdSessionId: session.id,
  });
}

function openSignUp(instance: Instance, request: BrowserRequest): SignUp {
  const signUp = requireOwnAttempt(instance, instance.store.signUps, request);
  if (signUp.status === 'complete')
    throw new ApiError(400, 'resource_forbidden', 'This sign-up is complete.');
  return signUp;
}
