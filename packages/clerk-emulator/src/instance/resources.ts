import type {
  Client,
  Dated,
  Invitation,
  OrganizationInvitation,
  Session,
  SignIn,
  SignInToken,
  SignUp,
  Ticket,
  User,
  Verification,
} from './data';
import { isVerified } from './identifiers';
import { imageUrl } from './images';
import type { Instance } from './instance';
import { factorAge } from './tokens';

/** A JSON object in Clerk's format. */
export type Resource = Record<string, unknown>;

const VERIFICATION_OBJECTS = {
  email_code: 'verification_otp',
  reset_password_email_code: 'verification_otp',
  password: 'verification_password',
  ticket: 'verification_ticket',
} as const;

/** The fields that most resources share. */
export const datedResource = ({ id, createdAt, updatedAt }: Dated): Resource => ({
  id,
  created_at: createdAt,
  updated_at: updatedAt,
});

/** A user in responses of the Backend API and in events. */
export function userResource(user: User): Resource {
  return { ...publicUserResource(user), private_metadata: user.privateMetadata };
}

/** A user in responses of the Frontend API, without the private metadata. */
export function publicUserResource(user: User, memberships: readonly Resource[] = []): Resource {
  const { emails, phones, wallets } = user;
  return {
    id: user.id,
    object: 'user',
    external_id: user.externalId,
    username: user.username,
    first_name: user.firstName,
    last_name: user.lastName,
    image_url: userImage(user),
    profile_image_url: userImage(user),
    has_image: user.imageUrl !== null,
    primary_email_address_id: emails[0]?.id ?? null,
    primary_phone_number_id: phones[0]?.id ?? null,
    primary_web3_wallet_id: wallets[0]?.id ?? null,
    email_addresses: emailAddressResources(user),
    phone_numbers: phones.map(({ id, value }) => ({
      ...identifierResource(user, id, 'phone_number', 'phone_code'),
      phone_number: value,
      reserved_for_second_factor: false,
      default_second_factor: false,
      backup_codes: null,
      reserved: false,
      linked_to: [],
    })),
    web3_wallets: wallets.map(({ id, value }) => ({
      ...identifierResource(user, id, 'web3_wallet', 'admin'),
      web3_wallet: value,
    })),
    external_accounts: [],
    enterprise_accounts: [],
    saml_accounts: [],
    passkeys: [],
    organization_memberships: memberships,
    password_enabled: user.password !== null,
    password_last_updated_at: user.passwordUpdatedAt,
    totp_enabled: false,
    backup_code_enabled: false,
    two_factor_enabled: false,
    mfa_enabled_at: null,
    mfa_disabled_at: null,
    public_metadata: user.publicMetadata,
    unsafe_metadata: user.unsafeMetadata,
    last_sign_in_at: user.lastSignInAt,
    last_active_at: user.lastSignInAt,
    banned: user.banned,
    locked: user.locked,
    deprovisioned: false,
    lockout_expires_in_seconds: null,
    verification_attempts_remaining: 100,
    ...user.settings,
    created_at: Math.floor(user.createdAt),
    updated_at: user.updatedAt,
  };
}

/** The e-mail addresses of a user, the primary address first. */
export function emailAddressResources(user: User): Resource[] {
  return user.emails.map(({ id, value, verification }) => ({
    ...identifierResource(user, id, 'email_address', 'email_code'),
    ...(verification && { verification: verificationResource(verification) }),
    email_address: value,
    reserved: false,
    linked_to: [],
    matches_sso_connection: false,
  }));
}

/** The fields that all identifiers of a user share, with the verification of an identifier that is verified. */
function identifierResource(user: User, id: string, object: string, strategy: string): Resource {
  const createdAt = Math.floor(user.createdAt);
  return {
    id,
    object,
    verification: {
      object: strategy === 'admin' ? 'verification_admin' : 'verification_otp',
      status: 'verified',
      strategy,
      attempts: 1,
      expire_at: createdAt,
    },
    created_at: createdAt,
    updated_at: createdAt,
  };
}

/** A deleted user in responses and events. */
export function deletedUserResource(user: User): Resource {
  const externalId = user.externalId === null ? {} : { external_id: user.externalId };
  return { id: user.id, object: 'user', deleted: true, ...externalId };
}

/** A session in responses of the Backend API. */
export function sessionResource(session: Session): Resource {
  return {
    ...sessionBase(session),
    user_id: session.userId,
    client_id: session.clientId,
    last_active_organization_id: session.organizationId,
    ...datedResource(session),
  };
}

/** A sign-in or actor token. As in Clerk, each response contains its ticket, which is the secret that signs the user in. */
export function signInTokenResource(token: SignInToken, { origin }: URL): Resource {
  return {
    ...(token.actor ? { object: 'actor_token', actor: token.actor } : { object: 'sign_in_token' }),
    ...datedResource(token),
    status: token.status,
    user_id: token.userId,
    token: token.ticket,
    url: ticketLink(origin, token),
  };
}

/** Returns the link of a ticket. It has the origin of the request to the Backend API. */
const ticketLink = (origin: string, { ticket }: Ticket) => `${origin}/v1/tickets/accept?ticket=${ticket}`;

/** Returns the status of an invitation, of the instance or of an organization. */
export const invitationStatus = (
  { clock }: Instance,
  { status, expireAt }: Pick<OrganizationInvitation, 'status' | 'expireAt'>,
) => (status === 'pending' && expireAt !== null && expireAt <= clock.now() ? 'expired' : status);

/** An invitation to the instance. */
export function invitationResource(instance: Instance, invitation: Invitation, { origin }: URL): Resource {
  return {
    object: 'invitation',
    ...datedResource(invitation),
    email_address: invitation.email,
    public_metadata: invitation.publicMetadata,
    revoked: invitation.status === 'revoked',
    status: invitationStatus(instance, invitation),
    url: ticketLink(origin, invitation),
    expires_at: invitation.expireAt,
  };
}

/** A session in events, with its user. Clerk's SDK has the user. Its document does not. */
export function sessionEventResource(session: Session, user: User): Resource {
  return { ...sessionResource(session), user: userResource(user) };
}

/** The fields that all session resources share. */
function sessionBase(session: Session): Resource {
  return {
    object: 'session',
    id: session.id,
    status: session.status,
    expire_at: session.expireAt,
    abandon_at: session.expireAt,
    last_active_at: session.lastActiveAt,
    actor: session.actor ?? null,
  };
}

/** A session in responses of the Frontend API, with its user and, while it is active, a token for the browser. */
export function browserSessionResource(
  session: Session,
  more: {
    readonly user: User | undefined;
    readonly memberships: readonly Resource[];
    readonly token: string | undefined;
    readonly tasks: readonly Resource[] | null;
    readonly now: number;
  },
): Resource {
  const { user, token } = more;
  return {
    ...sessionBase(session),
    ...(more.tasks && session.status === 'active' && { status: 'pending' }),
    tasks: more.tasks,
    last_active_token: token === undefined ? null : { object: 'token', jwt: token },
    last_active_organization_id: session.organizationId,
    factor_verification_age: factorAge(session, more.now),
    ...(user === undefined ? {} : { user: publicUserResource(user, more.memberships) }),
    public_user_data: user ? publicUserData(user) : null,
    ...datedResource(session),
  };
}

/** Names of browsers by their part of a `User-Agent` header, each before those that its header contains, too. */
const BROWSERS = {
  Edg: 'Microsoft Edge',
  OPR: 'Opera',
  Firefox: 'Firefox',
  CriOS: 'Chrome',
  Chrome: 'Chrome',
  Version: 'Safari',
};

/** A session as one of the devices in the profile of a user. */
export function deviceResource(session: Session, { userAgent }: Pick<Client, 'userAgent'>): Resource {
  const [part, name] = Object.entries(BROWSERS).find(([each]) => userAgent.includes(`${each}/`)) ?? [];
  const version = new RegExp(`${part}/([\\d.]+)`).exec(userAgent)?.[1];
  return {
    ...sessionBase(session),
    tasks: null,
    latest_activity: {
      object: 'session_activity',
      id: `sess_activity_${session.id}`,
      device_type: /iPhone|iPad|Android|Macintosh|Windows|Linux/.exec(userAgent)?.[0] ?? 'Browser',
      is_mobile: /Mobile|iPhone|Android/.test(userAgent),
      ...(name && { browser_name: name, browser_version: version }),
      ip_address: '127.0.0.1',
    },
  };
}

/** The client of a browser with its sessions, oldest first, and its open attempts to sign in or up. */
export function clientResource(
  client: Client,
  more: {
    readonly sessions: readonly Resource[];
    readonly signIn: Resource | null;
    readonly signUp: Resource | null;
  },
): Resource {
  return {
    object: 'client',
    ...datedResource(client),
    sessions: more.sessions,
    sign_in: more.signIn,
    sign_up: more.signUp,
    last_active_session_id: more.sessions.at(-1)?.['id'] ?? null,
    last_authentication_strategy: client.lastStrategy,
    cookie_expires_at: null,
    captcha_bypass: true,
  };
}

/** An attempt to sign in, with the strategies that its user may choose from. */
export function signInResource(
  signIn: SignIn,
  user: User | undefined,
  { settings }: Pick<Instance, 'settings'>,
): Resource {
  return {
    object: 'sign_in_attempt',
    id: signIn.id,
    status: signIn.status,
    identifier: signIn.identifier,
    supported_identifiers: ['email_address', ...(settings.usernames ? ['username'] : [])],
    supported_first_factors: user && signIn.status !== 'complete' ? firstFactors(user, true) : null,
    supported_second_factors: null,
    first_factor_verification: verificationResource(signIn.verification),
    second_factor_verification: null,
    user_data: user ? userData(user) : null,
    created_session_id: signIn.createdSessionId,
    abandon_at: signIn.abandonAt,
    client_trust_state: null,
  };
}

/** An attempt to sign up. An unverified address is in `unverified_fields` only if the instance verifies addresses. */
export function signUpResource(signUp: SignUp, { settings }: Pick<Instance, 'settings'>): Resource {
  const { email, verification } = signUp;
  const isUnverified = email !== null && verification?.status !== 'verified' && settings.verifyEmailAtSignUp;
  return {
    object: 'sign_up_attempt',
    id: signUp.id,
    status: signUp.status,
    required_fields: ['email_address', 'password'],
    optional_fields: [...(settings.usernames ? ['username'] : []), 'first_name', 'last_name'],
    missing_fields: missingFields(signUp),
    unverified_fields: isUnverified ? ['email_address'] : [],
    username: signUp.username,
    first_name: signUp.firstName,
    last_name: signUp.lastName,
    email_address: email,
    phone_number: null,
    web3_wallet: null,
    has_password: signUp.password !== null,
    password_enabled: signUp.password !== null,
    custom_action: false,
    external_id: null,
    public_metadata: {},
    unsafe_metadata: signUp.unsafeMetadata,
    created_session_id: signUp.createdSessionId,
    created_user_id: signUp.createdUserId,
    abandon_at: signUp.abandonAt,
    legal_accepted_at: null,
    protect_check: null,
    verifications: {
      email_address: emailVerificationResource(verification),
      phone_number: null,
      web3_wallet: null,
      external_account: null,
    },
  };
}

/** Returns the required fields that a sign-up lacks. */
export function missingFields(signUp: SignUp): string[] {
  return [
    ...(signUp.email === null ? ['email_address'] : []),
    ...(signUp.password === null ? ['password'] : []),
  ];
}

/** Returns the picture of a user, or else the initials. */
export const userImage = (user: User) =>
  imageUrl(
    user,
    [user.firstName, user.lastName].filter(Boolean).join(' ') || (user.username ?? user.email ?? ''),
  );

function userData(user: User): Resource {
  return {
    first_name: user.firstName,
    last_name: user.lastName,
    image_url: userImage(user),
    has_image: user.imageUrl !== null,
  };
}

/** The fields of a user that other members of an organization see. */
export function publicUserData(user: User): Resource {
  const identifier = user.email ?? user.phones[0]?.value ?? user.username ?? '';
  return { ...userData(user), identifier, user_id: user.id };
}

/** Returns the strategies by which a user can be verified: the password, and a code to each verified address. */
export function firstFactors(user: User, canReset = false): Resource[] {
  const byMail = (strategy: string) =>
    user.emails.filter(isVerified).map(({ id, value }, index) => ({
      strategy,
      email_address_id: id,
      safe_identifier: value,
      primary: index === 0,
    }));
  const hasPassword = user.password !== null;
  return [
    ...(hasPassword ? [{ strategy: 'password' }] : []),
    ...byMail('email_code'),
    ...(hasPassword && canReset ? byMail('reset_password_email_code') : []),
  ];
}

/** A verification, or null if none has begun. */
export function verificationResource(verification: Verification | null): Resource | null {
  if (verification === null) return null;
  return {
    object: VERIFICATION_OBJECTS[verification.strategy],
    status: verification.status,
    strategy: verification.strategy,
    attempts: verification.attempts,
    expire_at: verification.expireAt,
  };
}

/** Returns null until a code is requested. The sign-up component of the SDK requests a code when it reads null. */
function emailVerificationResource(verification: Verification | null): Resource | null {
  if (verification === null) return null;
  return {
    ...verificationResource(verification),
    next_action: verification.status === 'verified' ? '' : 'needs_attempt',
    supported_strategies: ['email_code'],
  };
}
