import { activeSessions, issueToken } from '../accounts';
import type { Client, Session, SignIn, SignUp, User, Verification } from '../data';
import type { Instance } from '../instance';
import { AVATAR, publicUserResource, sessionResource } from '../resources';
import type { Browser } from './browser';

type Resource = Record<string, unknown>;
const MINUTE = 60_000;

/** The client with its sessions and the attempts under way: what the SDK keeps of the server's state. */
export function clientResource(instance: Instance, browser: Browser): Resource | null {
  const { client } = browser;
  if (client === undefined) return null;
  const sessions = activeSessions(instance, client.id);
  return {
    object: 'client',
    id: client.id,
    sessions: sessions.map((session) => browserSessionResource(instance, session, browser)),
    sign_in: currentSignIn(instance, client),
    sign_up: currentSignUp(instance, client),
    last_active_session_id: sessions.at(-1)?.id ?? null,
    last_authentication_strategy: client.lastStrategy,
    cookie_expires_at: null,
    captcha_bypass: true,
    created_at: client.createdAt,
    updated_at: client.updatedAt,
  };
}

/** A session as the browser sees it: with its user and a new token. */
export function browserSessionResource(instance: Instance, session: Session, browser: Browser): Resource {
  const user = instance.store.users.get(session.userId);
  const isActive = session.status === 'active' && user !== undefined;
  return {
    ...sessionResource(session),
    tasks: null,
    factor_verification_age: [Math.floor((instance.clock.now() - session.createdAt) / MINUTE), -1],
    user: user ? publicUserResource(user) : null,
    public_user_data: user ? publicUserData(user) : null,
    last_active_token: isActive ? { object: 'token', jwt: issueToken(instance, session, browser) } : null,
  };
}

/** An attempt to sign in, with the ways that are open to its user. */
export function signInResource(instance: Instance, signIn: SignIn): Resource {
  const user = signIn.userId === null ? undefined : instance.store.users.get(signIn.userId);
  return {
    object: 'sign_in',
    id: signIn.id,
    status: signIn.status,
    identifier: signIn.identifier,
    supported_identifiers: ['email_address'],
    supported_first_factors: user && signIn.status !== 'complete' ? firstFactors(user) : null,
    supported_second_factors: null,
    first_factor_verification: verificationResource(signIn.verification),
    second_factor_verification: null,
    user_data: user ? { ...publicUserData(user), user_id: undefined } : null,
    created_session_id: signIn.createdSessionId,
    abandon_at: signIn.abandonAt,
    client_trust_state: null,
  };
}

/** An attempt to sign up, with what it still lacks. */
export function signUpResource(instance: Instance, signUp: SignUp): Resource {
  const { email, verification } = signUp;
  const isUnverified = email !== null && verification?.status !== 'verified' && instance.verifyEmailAtSignUp;
  return {
    object: 'sign_up',
    id: signUp.id,
    status: signUp.status,
    required_fields: ['email_address', 'password'],
    optional_fields: ['first_name', 'last_name'],
    missing_fields: missingFields(signUp),
    unverified_fields: isUnverified ? ['email_address'] : [],
    username: null,
    first_name: signUp.firstName,
    last_name: signUp.lastName,
    email_address: email,
    phone_number: null,
    web3_wallet: null,
    external_account: null,
    external_account_strategy: null,
    has_password: signUp.password !== null,
    unsafe_metadata: signUp.unsafeMetadata,
    created_session_id: signUp.createdSessionId,
    created_user_id: signUp.createdUserId,
    abandon_at: signUp.abandonAt,
    legal_accepted_at: null,
    locale: null,
    verifications: {
      email_address: email === null ? null : emailVerificationResource(verification),
      phone_number: null,
      web3_wallet: null,
      external_account: null,
    },
  };
}

/** The required fields that a sign-up has not given yet. */
export function missingFields(signUp: SignUp): string[] {
  return [
    ...(signUp.email === null ? ['email_address'] : []),
    ...(signUp.password === null ? ['password'] : []),
  ];
}

function currentSignIn(instance: Instance, client: Client): Resource | null {
  const signIn = client.signInId === null ? undefined : instance.store.signIns.get(client.signInId);
  return signIn && signIn.status !== 'complete' ? signInResource(instance, signIn) : null;
}

function currentSignUp(instance: Instance, client: Client): Resource | null {
  const signUp = client.signUpId === null ? undefined : instance.store.signUps.get(client.signUpId);
  return signUp && signUp.status !== 'complete' ? signUpResource(instance, signUp) : null;
}

function publicUserData(user: User): Resource {
  return {
    first_name: user.firstName,
    last_name: user.lastName,
    image_url: AVATAR,
    has_image: false,
    identifier: user.email,
    user_id: user.id,
  };
}

function firstFactors(user: User): Resource[] {
  const address = { email_address_id: user.emailId, safe_identifier: user.email, primary: true };
  const byCode = { strategy: 'email_code', ...address };
  if (user.password === null) return [byCode];
  return [{ strategy: 'password' }, byCode, { strategy: 'reset_password_email_code', ...address }];
}

function verificationResource(verification: Verification | null): Resource | null {
  if (verification === null) return null;
  return {
    object: 'verification',
    status: verification.status,
    strategy: verification.strategy,
    attempts: verification.attempts,
    expire_at: verification.expireAt,
    verified_at_client: null,
  };
}

/** Before a code is asked for there is no strategy: by that the SDK's component knows to ask for one. */
function emailVerificationResource(verification: Verification | null): Resource {
  const unprepared = { object: 'verification', status: 'unverified', strategy: null, attempts: null };
  const nextAction = { unverified: 'needs_attempt', verified: '' };
  return {
    ...(verificationResource(verification) ?? { ...unprepared, expire_at: null }),
    next_action: verification ? nextAction[verification.status] : 'needs_prepare',
    supported_strategies: ['email_code'],
  };
}
