import { z } from 'zod';
import { errorBody, parse, type Routes, wrapHandlers } from '../http';
import {
  acceptPassword,
  activeSessions,
  changeClient,
  createSession,
  endSessionsOf,
  organizationAtSignIn,
  requireUnlocked,
  requireUser,
  updateUser,
} from '../instance/accounts';
import { ApiError } from '../instance/api-error';
import { signInResource } from '../instance/attempt-resources';
import { type Client, SignIn, type SignInToken, type User, Verification } from '../instance/data';
import { userByIdentifier } from '../instance/identifiers';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { CodeRequest, checkCode, FirstFactor, mailCodeToUser } from '../instance/mail';
import { verifyPassword } from '../instance/passwords';
import { connect, ownerOf, requireTransfer, type SocialAccount, transferable } from '../instance/social';
import { closeTicket, requireTicket, verifiedByTicket } from '../instance/tickets';
import {
  ATTEMPT_LIFE,
  type BrowserRequest,
  requireOwnAttempt,
  requireOwnPage,
  requireSignedOut,
} from './browser';

// Without effect: `action_complete_redirect_url`. The page of `redirect_url` completes an attempt with a social provider.
const Create = z.object({
  identifier: z.string().optional(),
  strategy: z.string().optional(),
  password: z.string().optional(),
  ticket: z.string().optional(),
  transfer: z.stringbool().optional(),
});
const Reset = z.object({
  password: z.string(),
  sign_out_of_other_sessions: z.stringbool().default(false),
});

/** A request for a step of a sign-in whose user is known. */
interface StepRequest extends BrowserRequest {
  readonly signIn: SignIn;
  readonly user: User;
}

/** Returns the routes that sign users in by password, mailed code, mailed code and new password, ticket or social provider. */
export function signInRoutes(instance: Instance): Routes<BrowserRequest, unknown> {
  const { signIns, signUps } = instance.store;
  const create = (request: BrowserRequest) => {
    const { identifier = null, strategy, password, ...input } = parse(Create, request.body);
    const client = request.browser.establish();
    requireSignedOut(instance, client.id);
    if (strategy === 'ticket') return acceptTicket(instance, client, input.ticket ?? '');
    if (input.transfer) {
      const { external, externalVerification: verification } = signUps.get(client.signUpId ?? '') ?? {};
      return enterSignIn(instance, begin(instance, client, { verification }), requireTransfer(external));
    }
    if (strategy?.startsWith('oauth_')) {
      const id = newId('sia');
      return begin(instance, client, { id, verification: socialVerification(instance, request, id) });
    }
    if (identifier === null) return begin(instance, client, {});
    const user = userByIdentifier(instance, identifier);
    if (user === undefined)
      throw new ApiError(422, 'form_identifier_not_found', "Couldn't find your account.", 'identifier');
    requireOtherUser(instance, client, user);
    const signIn = begin(instance, client, { identifier, userId: user.id });
    const step = { ...request, signIn, user };
    if (password !== undefined) return enterPassword(instance, step, password);
    return strategy === undefined || strategy === 'password' ? signIn : sendCode(instance, step);
  };
  const steps: Routes<StepRequest, SignIn> = {
    'POST /v1/client/sign_ins/:id/prepare_first_factor': (request) => sendCode(instance, request),
    'POST /v1/client/sign_ins/:id/attempt_first_factor': (request) => {
      const { signIn, user, body } = request;
      const input = parse(FirstFactor, body);
      if (input.strategy === 'password') return enterPassword(instance, request, input.password);
      const sent = signIn.verification?.strategy === input.strategy ? signIn.verification : null;
      const save = (verification: Verification) => signIns.put({ ...signIn, verification });
      const verified = { ...signIn, verification: checkCode(instance, sent, input.code, save) };
      if (!input.strategy.startsWith('reset_')) return complete(instance, verified, user);
      return signIns.put({ ...verified, status: 'needs_new_password' });
    },
    'POST /v1/client/sign_ins/:id/reset_password': ({ signIn, user, body }) => {
      if (signIn.status !== 'needs_new_password') throw forbidden('is not waiting for a new password');
      const input = parse(Reset, body);
      const updated = updateUser(instance, user, { password: acceptPassword(input.password, 'password') });
      if (input.sign_out_of_other_sessions) endSessionsOf(instance, updated);
      return complete(instance, signIn, updated);
    },
  };
  const routes: Routes<BrowserRequest, SignIn> = {
    'POST /v1/client/sign_ins': create,
    'GET /v1/client/sign_ins/:id': (request) => requireOwnAttempt(instance, signIns, request),
    ...wrapHandlers(steps, (step) => (request) => {
      const signIn = requireOwnAttempt(instance, signIns, request);
      if (signIn.userId === null) throw forbidden('does not have an account yet');
      if (signIn.status === 'complete') throw forbidden('is complete');
      return step({ ...request, signIn, user: requireUser(instance, signIn.userId) });
    }),
  };
  return wrapHandlers(routes, (handler) => (request) => signInResource(instance, handler(request)));
}

const forbidden = (problem: string) => new ApiError(400, 'resource_forbidden', `This sign-in ${problem}.`);

/** Throws a 400 with the id of the session if the user is signed in on the client, which may have several sessions. */
function requireOtherUser(instance: Instance, client: Client, user: User): void {
  const session = activeSessions(instance, client.id).find(({ userId }) => userId === user.id);
  if (session === undefined) return;
  const meta = { session_id: session.id };
  throw new ApiError(400, 'identifier_already_signed_in', "You're already signed in.", undefined, meta);
}

/** Signs in the user of a sign-in token. With a ticket, no factor is necessary. */
function acceptTicket(instance: Instance, client: Client, ticket: string): SignIn {
  const token = requireTicket(instance, 'sign_in_token', ticket);
  const user = requireUser(instance, token.userId);
  const known = { userId: user.id, identifier: user.email, verification: verifiedByTicket(token) };
  const signIn = complete(instance, begin(instance, client, known), user, token);
  closeTicket(instance, token, 'accepted');
  return signIn;
}

function begin(instance: Instance, client: Client, fields: Partial<z.input<typeof SignIn>>): SignIn {
  if (client.signInId !== null) instance.store.signIns.delete(client.signInId);
  const signIn = instance.store.signIns.put(
    SignIn.parse({
      id: newId('sia'),
      clientId: client.id,
      status: fields.userId ? 'needs_first_factor' : 'needs_identifier',
      abandonAt: instance.clock.now() + ATTEMPT_LIFE,
      ...fields,
    }),
  );
  instance.store.clients.put({ ...client, signInId: signIn.id });
  return signIn;
}

function enterPassword(instance: Instance, { signIn, user }: StepRequest, password: string): SignIn {
  requireUnlocked(user);
  return complete(instance, { ...signIn, verification: verifyPassword(instance, user, password) }, user);
}

function sendCode(instance: Instance, { signIn, user, body }: StepRequest): SignIn {
  requireUnlocked(user);
  const request = parse(CodeRequest, body);
  const purpose = request.strategy.startsWith('reset_') ? 'password reset' : 'sign-in';
  const verification = mailCodeToUser(instance, user, purpose, request);
  return instance.store.signIns.put({ ...signIn, status: 'needs_first_factor', verification });
}

const SocialRequest = z.object({ strategy: z.string(), redirect_url: z.string() });
const SOCIAL_MILLISECONDS = 10 * 60 * 1000;

/**
 * Returns a verification on the page of a social provider. The attempt is a sign-in, a sign-up or an external account. Throws
 * Clerk's 422 unless the strategy is that of an enabled provider, such as `oauth_google`, and a 400 for a page of another site.
 */
export function socialVerification(
  instance: Instance,
  request: BrowserRequest,
  attemptId: string,
): Verification {
  const { strategy, redirect_url } = parse(SocialRequest, request.body);
  const provider = strategy.replace(/^oauth_/, '');
  if (!strategy.startsWith('oauth_') || !instance.settings.socialProviders.includes(provider)) {
    const message = `${strategy} does not match one of the allowed values for parameter strategy.`;
    throw new ApiError(422, 'form_param_value_invalid', message, 'strategy');
  }
  const returnUrl = requireOwnPage(instance, request, redirect_url).href;
  const page = `${request.url.origin}/social/${provider}?attempt=${attemptId}`;
  const expireAt = instance.clock.now() + SOCIAL_MILLISECONDS;
  return Verification.parse({ strategy, expireAt, social: { page, returnUrl } });
}

/**
 * Signs the user of an account at a social provider in. If there is no user, the sign-in keeps the account, so that a sign-up can
 * take it over. If the user cannot sign in, the sign-in has Clerk's error.
 */
export function enterSignIn(instance: Instance, signIn: SignIn, account: SocialAccount): SignIn {
  const { signIns, clients } = instance.store;
  const before = { ...requireTransfer(signIn.verification), error: undefined };
  const owner = ownerOf(instance, account);
  if (owner === undefined) {
    const verification = transferable(before, 'external_account_not_found', 'was not found');
    return signIns.put({ ...signIn, external: account, verification });
  }
  try {
    const client = clients.get(signIn.clientId);
    if (client) requireOtherUser(instance, client, owner);
    const verification = { ...before, status: 'verified' } as const;
    const entered = { ...signIn, userId: owner.id, identifier: account.email, verification };
    return complete(instance, entered, connect(instance, owner, account));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return signIns.put({ ...signIn, verification: { ...before, error: errorBody(error).errors[0] } });
  }
}

function complete(instance: Instance, signIn: SignIn, user: User, token?: SignInToken): SignIn {
  const organizationId = token?.organizationId ?? organizationAtSignIn(instance, user);
  const session = createSession(instance, user, signIn.clientId, organizationId, token);
  changeClient(instance, signIn.clientId, { lastStrategy: signIn.verification?.strategy ?? null });
  return instance.store.signIns.put({ ...signIn, status: 'complete', createdSessionId: session.id });
}
