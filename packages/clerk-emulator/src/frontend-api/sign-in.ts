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
import { type Client, SignIn, type SignInToken, type User } from '../instance/data';
import { userByIdentifier } from '../instance/identifiers';
import { newId } from '../instance/ids';
import type { Instance } from '../instance/instance';
import { CodeRequest, checkCode, FirstFactor, mailCodeToUser } from '../instance/mail';
import { verifyPassword } from '../instance/passwords';
import { signInResource } from '../instance/resources';
import { connect, ownerOf, requireTransfer, type SocialAccount } from '../instance/social';
import { closeTicket, requireTicket, verifiedByTicket } from '../instance/tickets';
import { ATTEMPT_LIFE, type BrowserRequest, requireOwnAttempt, requireSignedOut } from './browser';
import { socialVerification } from './settings';

const Create = z.object({
  identifier: z.string().optional(),
  strategy: z.string().optional(),
  password: z.string().optional(),
  ticket: z.string().optional(),
  redirect_url: z.string().optional(),
  transfer: z.stringbool().optional(),
});
const Reset = z.object({
  password: z.string(),
  sign_out_of_other_sessions: z.stringbool().default(false),
});

/** Returns the routes that sign users in by password, mailed code, mailed code and new password, or ticket. */
export function signInRoutes(instance: Instance): Routes<BrowserRequest, Record<string, unknown>> {
  const { signIns } = instance.store;
  const routes: Routes<BrowserRequest, SignIn> = {
    'POST /v1/client/sign_ins': (request) => {
      const input = parse(Create, request.body);
      const client = request.browser.establish();
      requireSignedOut(instance, client);
      if (input.strategy === 'ticket') return acceptTicket(instance, client, input.ticket ?? '');
      if (input.transfer) {
        const { external, externalVerification } = instance.store.signUps.get(client.signUpId ?? '') ?? {};
        const signIn = { ...begin(instance, client, undefined), verification: externalVerification ?? null };
        return enterSignIn(instance, signIn, requireTransfer(external));
      }
      if (input.strategy?.startsWith('oauth_')) {
        const id = newId('sia');
        const verification = socialVerification(instance, request, id, input);
        return begin(instance, client, undefined, { id, verification });
      }
      const user = requireUserByIdentifier(instance, input.identifier);
      requireOtherUser(instance, client, user);
      const begun = begin(instance, client, user, { identifier: input.identifier ?? null });
      if (user === undefined) return begun;
      if (input.password !== undefined) return enterPassword(instance, begun, user, input.password);
      if (input.strategy === undefined || input.strategy === 'password') return begun;
      return sendCode(instance, begun, user, parse(CodeRequest, { strategy: input.strategy }));
    },
    'GET /v1/client/sign_ins/:id': (request) => requireOwnAttempt(instance, signIns, request),
    'POST /v1/client/sign_ins/:id/prepare_first_factor': (request) => {
      const { signIn, user } = openSignIn(instance, request);
      return sendCode(instance, signIn, user, parse(CodeRequest, request.body));
    },
    'POST /v1/client/sign_ins/:id/attempt_first_factor': (request) => {
      const { signIn, user } = openSignIn(instance, request);
      const input = parse(FirstFactor, request.body);
      if (input.strategy === 'password') return enterPassword(instance, signIn, user, input.password);
      const sent = signIn.verification?.strategy === input.strategy ? signIn.verification : null;
      const verification = checkCode(instance, sent, input.code, (failed) =>
        signIns.put({ ...signIn, verification: failed }),
      );
      const verified = { ...signIn, verification };
      if (!input.strategy.startsWith('reset_')) return complete(instance, verified, user);
      return signIns.put({ ...verified, status: 'needs_new_password' });
    },
    'POST /v1/client/sign_ins/:id/reset_password': (request) => {
      const signIn = requireOwnAttempt(instance, signIns, request);
      const user = userOf(instance, signIn);
      if (user === undefined || signIn.status !== 'needs_new_password') {
        throw new ApiError(400, 'resource_forbidden', 'This sign-in is not waiting for a new password.');
      }
      const input = parse(Reset, request.body);
      const password = acceptPassword(input.password, 'password');
      const updated = updateUser(instance, user, { password });
      if (input.sign_out_of_other_sessions) endSessionsOf(instance, updated);
      return complete(instance, signIn, updated);
    },
  };
  return wrapHandlers(routes, (handler) => (request) => {
    const signIn = handler(request);
    return signInResource(signIn, userOf(instance, signIn), instance);
  });
}

function requireUserByIdentifier(instance: Instance, identifier: string | undefined): User | undefined {
  if (identifier === undefined) return undefined;
  const user = userByIdentifier(instance, identifier);
  if (user) return user;
  throw new ApiError(422, 'form_identifier_not_found', "Couldn't find your account.", 'identifier');
}

/** Throws a 400 with the id of the session if the user is signed in on the client, which may have several sessions. */
function requireOtherUser(instance: Instance, client: Client, user: User | undefined): void {
  const session = activeSessions(instance, client.id).find(({ userId }) => userId === user?.id);
  if (session === undefined) return;
  const message = "You're already signed in.";
  throw new ApiError(400, 'identifier_already_signed_in', message, undefined, {
    session_id: session.id,
  });
}

/** Signs in the user of a sign-in token. With a ticket, no factor is necessary. */
function acceptTicket(instance: Instance, client: Client, ticket: string): SignIn {
  const token = requireTicket(instance, 'sign_in_token', ticket);
  const user = requireUser(instance, token.userId);
  const verification = verifiedByTicket(token);
  const signIn = complete(instance, { ...begin(instance, client, user), verification }, user, token);
  closeTicket(instance, token, 'accepted');
  return signIn;
}

function begin(
  instance: Instance,
  client: Client,
  user: User | undefined,
  fields: Partial<SignIn> = {},
): SignIn {
  if (client.signInId !== null) instance.store.signIns.delete(client.signInId);
  const signIn = instance.store.signIns.put(
    SignIn.parse({
      id: newId('sia'),
      clientId: client.id,
      status: user ? 'needs_first_factor' : 'needs_identifier',
      identifier: user?.email ?? null,
      userId: user?.id ?? null,
      abandonAt: instance.clock.now() + ATTEMPT_LIFE,
      ...fields,
    }),
  );
  instance.store.clients.put({ ...client, signInId: signIn.id });
  return signIn;
}

function enterPassword(instance: Instance, signIn: SignIn, user: User, password: string): SignIn {
  requireUnlocked(user);
  return complete(instance, { ...signIn, verification: verifyPassword(instance, user, password) }, user);
}

function sendCode(instance: Instance, signIn: SignIn, user: User, request: z.output<typeof CodeRequest>) {
  requireUnlocked(user);
  const purpose = request.strategy.startsWith('reset_') ? 'password reset' : 'sign-in';
  const verification = mailCodeToUser(instance, user, purpose, request);
  return instance.store.signIns.put({ ...signIn, status: 'needs_first_factor', verification });
}

/**
 * Signs the user of an account at a social provider in. If there is no user, the sign-in keeps the account, so that a sign-up can
 * take it over. If the user cannot sign in, the sign-in has Clerk's error.
 */
export function enterSignIn(instance: Instance, signIn: SignIn, account: SocialAccount): SignIn {
  const { signIns, clients } = instance.store;
  const { error: _, ...before } = requireTransfer(signIn.verification);
  const owner = ownerOf(instance, account);
  if (owner === undefined) {
    const message = 'The External Account was not found.';
    const error = { code: 'external_account_not_found', message, long_message: message };
    return signIns.put({
      ...signIn,
      external: account,
      verification: { ...before, status: 'transferable', error },
    });
  }
  try {
    const client = clients.get(signIn.clientId);
    if (client) requireOtherUser(instance, client, owner);
    const verified = { ...before, status: 'verified' } as const;
    const entered = { ...signIn, userId: owner.id, identifier: account.email, verification: verified };
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

function openSignIn(instance: Instance, request: BrowserRequest): { signIn: SignIn; user: User } {
  const signIn = requireOwnAttempt(instance, instance.store.signIns, request);
  if (signIn.userId === null)
    throw new ApiError(400, 'resource_forbidden', 'This sign-in does not have an account yet.');
  if (signIn.status === 'complete')
    throw new ApiError(400, 'resource_forbidden', 'This sign-in is complete.');
  return { signIn, user: requireUser(instance, signIn.userId) };
}

function userOf(instance: Instance, signIn: SignIn): User | undefined {
  return signIn.userId === null ? undefined : instance.store.users.get(signIn.userId);
}
