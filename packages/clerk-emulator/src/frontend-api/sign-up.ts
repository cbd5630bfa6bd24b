import { z } from 'zod';
import { parse, type Routes, wrapHandlers } from '../http';
import {
  acceptPassword,
  createSession,
  createUser,
  requireFree,
  requireUsername,
} from '../instance/accounts';
import { ApiError } from '../instance/api-error';
import { SignUp } from '../instance/data';
import { EmailAddress, PhoneNumber } from '../instance/identifiers';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { checkCode, mailCode } from '../instance/mail';
import { missingFields, signUpResource, unverifiedFields } from '../instance/resources';
import { ownerOf, requireTransfer, type SocialAccount } from '../instance/social';
import { closeTicket, requireTicket, ticketsOf, verifiedByTicket } from '../instance/tickets';
import { ATTEMPT_LIFE, type BrowserRequest, requireOwnAttempt, requireSignedOut } from './browser';
import { requireSetting, socialVerification } from './settings';

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
  phone_number: optional(PhoneNumber),
  username: optional(z.string()),
  password: optional(z.string()),
  first_name: optional(z.string()),
  last_name: optional(z.string()),
  unsafe_metadata: optional(UnsafeMetadata),
  ticket: optional(z.string()),
});
const Start = z.object({
  strategy: z.string().optional(),
  redirect_url: z.string().optional(),
  transfer: z.stringbool().optional(),
});
const Prepare = z.object({ strategy: z.enum(['email_code', 'phone_code']).default('email_code') });
/** The verification by each strategy. */
const VERIFICATIONS = { email_code: 'verification', phone_code: 'phoneVerification' } as const;
const Code = Prepare.extend({ code: z.string() });

/**
 * Returns the routes for sign-ups. A mailed code or the ticket of an invitation proves the address, if the instance verifies it.
 */
export function signUpRoutes(instance: Instance): Routes<BrowserRequest, Record<string, unknown>> {
  const { clients, signUps } = instance.store;
  const routes: Routes<BrowserRequest, SignUp> = {
    'POST /v1/client/sign_ups': (request) => {
      const { body, browser } = request;
      const input = parse(Start, body);
      const client = browser.establish();
      requireSignedOut(instance, client);
      const abandonAt = instance.clock.now() + ATTEMPT_LIFE;
      const begun = enter(instance, SignUp.parse({ id: newId('sua'), clientId: client.id, abandonAt }), body);
      const { external, verification } = instance.store.signIns.get(client.signInId ?? '') ?? {};
      const externalVerification = input.transfer
        ? requireTransfer(verification)
        : input.strategy?.startsWith('oauth_')
          ? socialVerification(instance, request, begun.id, input)
          : null;
      const signUp = signUps.put({ ...begun, externalVerification });
      if (client.signUpId !== null) signUps.delete(client.signUpId);
      clients.put({ ...client, signUpId: signUp.id });
      return input.transfer
        ? enterSignUp(instance, signUp, requireTransfer(external))
        : completeIfReady(instance, signUp);
    },
    'PATCH /v1/client/sign_ups/:id': (request) => {
      const signUp = enter(instance, openSignUp(instance, request), request.body);
      return completeIfReady(instance, signUp);
    },
    'GET /v1/client/sign_ups/:id': (request) => requireOwnAttempt(instance, signUps, request),
    'POST /v1/client/sign_ups/:id/prepare_verification': (request) => {
      const signUp = openSignUp(instance, request);
      const { strategy } = parse(Prepare, request.body);
      const [parameter, to] =
        strategy === 'phone_code' ? ['phone_number', signUp.phone] : ['email_address', signUp.email];
      if (to === null) {
        throw new ApiError(422, 'form_param_missing', `${parameter} must be included.`, parameter);
      }
      const verification = mailCode(instance, to, 'sign-up', strategy);
      return signUps.put({ ...signUp, [VERIFICATIONS[strategy]]: verification });
    },
    'POST /v1/client/sign_ups/:id/attempt_verification': (request) => {
      const signUp = openSignUp(instance, request);
      const { code, strategy } = parse(Code, request.body);
      const field = VERIFICATIONS[strategy];
      const verification = checkCode(instance, signUp[field], code, (failed) =>
        signUps.put({ ...signUp, [field]: failed }),
      );
      return completeIfReady(instance, signUps.put({ ...signUp, [field]: verification }));
    },
  };
  return wrapHandlers(routes, (handler) => (request) => signUpResource(handler(request), instance));
}

/** Saves fields in a sign-up. A new address discards the proof of the old one. A ticket sets the address and proves it. */
function enter(instance: Instance, signUp: SignUp, body: Readonly<Record<string, unknown>>): SignUp {
  requireSetting(instance, body, 'username', 'phone_number');
  const fields = parse(Fields, body);
  const invitation =
    fields.ticket === undefined ? undefined : requireTicket(instance, 'invitation', fields.ticket);
  const email = invitation?.email ?? fields.email_address ?? signUp.email;
  const phone = fields.phone_number ?? signUp.phone;
  const isUnchanged = email === signUp.email;
  if (email !== null) requireFree(instance, email, 'email_address');
  if (phone !== null) requireFree(instance, phone, 'phone_number');
  if (fields.username !== undefined) {
    requireUsername(fields.username);
    requireFree(instance, fields.username, 'username');
  }
  return instance.store.signUps.put({
    ...signUp,
    email,
    phone,
    username: fields.username ?? signUp.username,
    password: fields.password === undefined ? signUp.password : acceptPassword(fields.password, 'password'),
    firstName: fields.first_name ?? signUp.firstName,
    lastName: fields.last_name ?? signUp.lastName,
    unsafeMetadata: fields.unsafe_metadata ?? signUp.unsafeMetadata,
    verification: invitation ? verifiedByTicket(invitation) : isUnchanged ? signUp.verification : null,
    phoneVerification: phone === signUp.phone ? signUp.phoneVerification : null,
    invitationId: invitation?.id ?? (isUnchanged ? signUp.invitationId : null),
  });
}

/**
 * Completes a sign-up with an account at a social provider, whose address needs no code. If a user has the account, the sign-up keeps
 * it, so that a sign-in can take it over.
 */
export function enterSignUp(instance: Instance, signUp: SignUp, account: SocialAccount): SignUp {
  const { signUps } = instance.store;
  const { error: _, ...before } = requireTransfer(signUp.externalVerification);
  if (ownerOf(instance, account)) {
    const message = 'The External Account already exists.';
    const error = { code: 'external_account_exists', message, long_message: message };
    return signUps.put({
      ...signUp,
      external: account,
      externalVerification: { ...before, status: 'transferable', error },
    });
  }
  const verification = { ...before, status: 'verified' } as const;
  const entered = {
    ...signUp,
    email: account.email,
    verification,
    firstName: signUp.firstName ?? account.firstName,
    lastName: signUp.lastName ?? account.lastName,
    external: account,
    externalVerification: verification,
  };
  return completeIfReady(instance, signUps.put(entered));
}

/** Creates the user and a session if the sign-up has all fields and a verified address, where the instance verifies it. */
function completeIfReady(instance: Instance, signUp: SignUp): SignUp {
  const { email, phone, username, password, firstName, lastName, unsafeMetadata, external } = signUp;
  const { settings } = instance;
  const isReady = missingFields(signUp, settings).length + unverifiedFields(signUp, settings).length === 0;
  if (!isReady || signUp.externalVerification?.status === 'unverified') return signUp;
  const invitation = ticketsOf(instance, 'invitation').find(({ id }) => id === signUp.invitationId);
  if (invitation) closeTicket(instance, invitation, 'accepted');
  const publicMetadata = invitation?.publicMetadata ?? {};
  const profile = { username, password, firstName, lastName, unsafeMetadata, publicMetadata };
  const user = createUser(instance, {
    emails: email === null ? [] : [email],
    phones: phone === null ? [] : [phone],
    externalAccounts: external ? [{ id: newId('eac'), ...external }] : [],
    ...profile,
  });
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
