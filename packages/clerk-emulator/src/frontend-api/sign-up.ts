import { z } from 'zod';
import { type ApiRequest, parse, type Routes, wrapHandlers } from '../http';
import {
  acceptPassword,
  changeClient,
  createSession,
  createUser,
  requireFree,
  requireUsername,
} from '../instance/accounts';
import { ApiError, parameterError } from '../instance/api-error';
import { missingFields, signUpResource, unverifiedFields } from '../instance/attempt-resources';
import { SignUp, type Verification } from '../instance/data';
import { EmailAddress, PhoneNumber } from '../instance/identifiers';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { checkCode, mailCode } from '../instance/mail';
import { UserSettings } from '../instance/settings';
import { ownerOf, requireTransfer, type SocialAccount, transferable } from '../instance/social';
import { closeTicket, requireTicket, ticketsOf, verifiedByTicket } from '../instance/tickets';
import { ATTEMPT_LIFE, type BrowserRequest, requireOwnAttempt, requireSignedOut } from './browser';
import { socialVerification } from './sign-in';

/** Treats an empty field as missing, because the SDK sends all fields of its form. */
const optional = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (value === '' ? undefined : value), schema.optional());

/** Metadata in a form. Text that is not JSON stays a text, which is invalid. */
export const UnsafeMetadata = z.preprocess(
  (text) => {
    try {
      return JSON.parse(String(text));
    } catch {
      return text;
    }
  },
  z.record(z.string(), z.unknown()),
);

// Without effect: `captcha_token` and the like. The instance has no protection from bots.
const Fields = z.object({
  email_address: optional(EmailAddress),
  phone_number: optional(PhoneNumber),
  username: optional(z.string()),
  password: optional(z.string()),
  first_name: optional(z.string()),
  last_name: optional(z.string()),
  unsafe_metadata: optional(UnsafeMetadata),
  legal_accepted: optional(z.stringbool()),
  ticket: optional(z.string()),
});
/** Throws Clerk's 422 for a user name or a phone number if the setting for it is off. */
export function requireSettings(
  { settings }: Instance,
  { username, phone_number }: ApiRequest['body'],
): void {
  if (username && !settings.usernames) throw parameterError('unknown', 'username');
  if (phone_number && !settings.phoneNumbers) throw parameterError('unknown', 'phone_number');
}

const Start = z.object({ strategy: z.string().optional(), transfer: z.stringbool().optional() });
const Prepare = z.object({ strategy: z.enum(['email_code', 'phone_code']).default('email_code') });
/** The fields with the identifier and the verification of each strategy. */
const FIELDS = {
  email_code: { identifier: 'email', verification: 'verification', parameter: 'email_address' },
  phone_code: { identifier: 'phone', verification: 'phoneVerification', parameter: 'phone_number' },
} as const;
const Code = Prepare.extend({ code: z.string() });

/**
 * Returns the routes for sign-ups. A mailed code or the ticket of an invitation proves the address, if the instance verifies it.
 */
export function signUpRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const { signIns, signUps } = instance.store;
  const open = (request: BrowserRequest) => {
    const signUp = requireOwnAttempt(instance, signUps, request);
    if (signUp.status !== 'complete') return signUp;
    throw new ApiError(400, 'resource_forbidden', 'This sign-up is complete.');
  };
  /** Saves the fields of a request. Then waits for a social provider if the request names one. */
  const proceed = (request: BrowserRequest, signUp: SignUp) => {
    const { strategy, transfer } = parse(Start, request.body);
    const entered = enter(instance, signUp, request.body);
    if (transfer) {
      const signInId = request.browser.client?.signInId ?? '';
      const { external, verification } = signIns.get(signInId) ?? {};
      const transferred = { ...entered, externalVerification: requireTransfer(verification) };
      return enterSignUp(instance, transferred, requireTransfer(external));
    }
    if (!strategy?.startsWith('oauth_')) return completeIfReady(instance, entered);
    const externalVerification = socialVerification(instance, request, signUp.id);
    return signUps.put({ ...entered, externalVerification });
  };
  const routes: Routes<BrowserRequest, SignUp> = {
    'POST /v1/client/sign_ups': (request) => {
      const { id: clientId, signUpId } = request.browser.establish();
      requireSignedOut(instance, clientId);
      const abandonAt = instance.clock.now() + ATTEMPT_LIFE;
      const signUp = proceed(request, SignUp.parse({ id: newId('sua'), clientId, abandonAt }));
      if (signUpId !== null) signUps.delete(signUpId);
      changeClient(instance, clientId, { signUpId: signUp.id });
      return signUp;
    },
    'PATCH /v1/client/sign_ups/:id': (request) => proceed(request, open(request)),
    'GET /v1/client/sign_ups/:id': (request) => requireOwnAttempt(instance, signUps, request),
    'POST /v1/client/sign_ups/:id/prepare_verification': (request) => {
      const signUp = open(request);
      const { strategy } = parse(Prepare, request.body);
      const { identifier, verification, parameter } = FIELDS[strategy];
      const to = signUp[identifier];
      if (to === null) throw parameterError('missing', parameter);
      return signUps.put({ ...signUp, [verification]: mailCode(instance, to, 'sign-up', strategy) });
    },
    'POST /v1/client/sign_ups/:id/attempt_verification': (request) => {
      const signUp = open(request);
      const { code, strategy } = parse(Code, request.body);
      const field = FIELDS[strategy].verification;
      const save = (verification: Verification) => signUps.put({ ...signUp, [field]: verification });
      return completeIfReady(instance, save(checkCode(instance, signUp[field], code, save)));
    },
  };
  return wrapHandlers(routes, (handler) => (request) => signUpResource(instance, handler(request)));
}

/** Saves fields in a sign-up. A new address discards the proof of the old one. A ticket sets the address and proves it. */
function enter(instance: Instance, signUp: SignUp, body: ApiRequest['body']): SignUp {
  const { email_address_or_phone_number: either = '', ...others } = body;
  const kind = String(either).includes('@') ? 'email_address' : 'phone_number';
  const form = either === '' ? others : { ...others, [kind]: either };
  requireSettings(instance, form);
  const fields = parse(Fields, form);
  const invitation =
    fields.ticket === undefined ? undefined : requireTicket(instance, 'invitation', fields.ticket);
  const invitationId = invitation?.id ?? signUp.invitationId;
  if (instance.settings.waitlist && invitationId === null)
    throw new ApiError(
      403,
      'sign_up_restricted_waitlist',
      'Sign ups need an invitation. Join the waitlist to get one.',
    );
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
    legalAcceptedAt: fields.legal_accepted ? instance.clock.now() : signUp.legalAcceptedAt,
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
  const before = { ...requireTransfer(signUp.externalVerification), error: undefined };
  if (ownerOf(instance, account)) {
    const externalVerification = transferable(before, 'external_account_exists', 'already exists');
    return signUps.put({ ...signUp, external: account, externalVerification });
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
  const { settings, store } = instance;
  const isReady = missingFields(signUp, settings).length + unverifiedFields(signUp, settings).length === 0;
  if (!isReady) return signUp;
  const invitation = ticketsOf(instance, 'invitation').find(({ id }) => id === signUp.invitationId);
  if (invitation) closeTicket(instance, invitation, 'accepted');
  const userSettings = UserSettings.parse({ legal_accepted_at: signUp.legalAcceptedAt });
  const profile = { username, password, firstName, lastName, unsafeMetadata, settings: userSettings };
  const user = createUser(instance, {
    emails: email === null ? [] : [email],
    phones: phone === null ? [] : [phone],
    externalAccounts: external ? [{ id: newId('eac'), ...external }] : [],
    publicMetadata: invitation?.publicMetadata ?? {},
    ...profile,
  });
  const session = createSession(instance, user, signUp.clientId);
  const created = { createdUserId: user.id, createdSessionId: session.id };
  return store.signUps.put({ ...signUp, status: 'complete', ...created });
}
