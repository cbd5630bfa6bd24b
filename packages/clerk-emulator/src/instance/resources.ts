import type {
  Client,
  Dated,
  ExternalAccount,
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
import { isVerified, KIND_NAMES, KINDS, type Kind } from './identifiers';
import { imageUrl } from './images';
import type { Instance } from './instance';
import type { Settings } from './settings';

/** A JSON object in Clerk's format. */
export type Resource = Record<string, unknown>;

/** Returns the object of a verification by a strategy. */
function verificationObject(strategy: string): string {
  if (strategy === 'password' || strategy === 'ticket') return `verification_${strategy}`;
  return strategy.startsWith('oauth_') ? 'verification_oauth' : 'verification_otp';
}

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
    email_addresses: identifierResources(user, 'email_address'),
    phone_numbers: identifierResources(user, 'phone_number'),
    external_accounts: user.externalAccounts.map((account) => externalAccountResource(user, account)),
    web3_wallets: wallets.map(({ id, value }) => ({
      ...identifierResource(user, id, 'web3_wallet', 'admin'),
      web3_wallet: value,
    })),
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

/** The e-mail addresses or the phone numbers of a user, the primary one first. */
export function identifierResources(user: User, kind: Kind): Resource[] {
  const { list, strategy } = KINDS[kind];
  const own =
    kind === 'phone_number'
      ? { reserved_for_second_factor: false, default_second_factor: false, backup_codes: null }
      : { matches_sso_connection: false };
  return user[list].map(({ id, value, verification }) => ({
    ...identifierResource(user, id, kind, strategy),
    ...(verification && { verification: verificationResource(verification) }),
    [kind]: value,
    reserved: false,
    linked_to: [],
    ...own,
  }));
}

/** An account of a user at a social provider. */
export function externalAccountResource(user: User, account: ExternalAccount): Resource {
  const strategy = `oauth_${account.provider}`;
  return {
    ...identifierResource(user, account.id, 'external_account', strategy),
    ...(account.verification && { verification: verificationResource(account.verification) }),
    provider: strategy,
    identification_id: account.id,
    provider_user_id: account.email,
    email_address: account.email,
    first_name: account.firstName,
    last_name: account.lastName,
    approved_scopes: 'email profile',
    image_url: '',
    username: null,
    public_metadata: {},
    label: null,
  };
}

/** The fields that all identifiers of a user share, with the verification of an identifier that is verified. */
function identifierResource(user: User, id: string, object: string, strategy: string): Resource {
  const createdAt = Math.floor(user.createdAt);
  return {
    id,
    object,
    verification: {
      object: strategy === 'admin' ? 'verification_admin' : verificationObject(strategy),
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
export function sessionBase(session: Session): Resource {
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
export function deviceResource(session: Session, client: Client | undefined): Resource {
  const { userAgent = '' } = client ?? {};
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

/** An attempt to sign in, with the strategies that its user may choose from. */
export function signInResource({ settings, store }: Instance, signIn: SignIn): Resource {
  const user = store.users.get(signIn.userId ?? '');
  return {
    object: 'sign_in_attempt',
    id: signIn.id,
    status: signIn.status,
    identifier: signIn.identifier,
    supported_identifiers: identificationStrategies(settings),
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

/** Returns the identifiers with which users sign in. */
export const identificationStrategies = ({ usernames, phoneNumbers }: Settings): string[] => [
  'email_address',
  ...(phoneNumbers ? ['phone_number'] : []),
  ...(usernames ? ['username'] : []),
];

/** An attempt to sign up. An unverified address is in `unverified_fields` only if the instance verifies addresses. */
export function signUpResource({ settings }: Instance, signUp: SignUp): Resource {
  const { email, phone, verification, phoneVerification } = signUp;
  const isOptional = settings.phoneNumbers;
  return {
    object: 'sign_up_attempt',
    id: signUp.id,
    status: signUp.status,
    required_fields: [...(isOptional ? [] : ['email_address']), 'password'],
    optional_fields: [
      ...identificationStrategies(settings).filter((name) => isOptional || name !== 'email_address'),
      'first_name',
      'last_name',
    ],
    missing_fields: missingFields(signUp, settings),
    unverified_fields: unverifiedFields(signUp, settings),
    username: signUp.username,
    first_name: signUp.firstName,
    last_name: signUp.lastName,
    email_address: email,
    phone_number: phone,
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
    legal_accepted_at: signUp.legalAcceptedAt,
    protect_check: null,
    verifications: {
      email_address: codeVerificationResource(verification, 'email_code'),
      phone_number: codeVerificationResource(phoneVerification, 'phone_code'),
      web3_wallet: null,
      external_account: verificationResource(signUp.externalVerification),
    },
  };
}

/** Returns the required fields that a sign-up lacks. A user of a social provider needs no password. */
export function missingFields({ email, phone, password, external }: SignUp, settings: Settings): string[] {
  const hasIdentifier = email !== null || (settings.phoneNumbers && phone !== null);
  return [
    ...(hasIdentifier ? [] : ['email_address']),
    ...(password === null && external === null ? ['password'] : []),
  ];
}

/** Returns the identifiers of a sign-up that the user has to verify. */
export function unverifiedFields(signUp: SignUp, { verifyEmailAtSignUp }: Settings): string[] {
  const { email, phone, verification, phoneVerification } = signUp;
  const isOpen = (each: Verification | null) => each?.status !== 'verified';
  return [
    ...(email !== null && isOpen(verification) && verifyEmailAtSignUp ? ['email_address'] : []),
    ...(phone !== null && isOpen(phoneVerification) ? ['phone_number'] : []),
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

/** Returns the strategies by which a user can be verified: the password, a code to each verified identifier, and accounts. */
export function firstFactors(user: User, canReset = false): Resource[] {
  const byCode = (kind: Kind, strategy: string) =>
    user[KINDS[kind].list].filter(isVerified).map(({ id, value }, index) => ({
      strategy,
      [`${kind}_id`]: id,
      safe_identifier: value,
      primary: index === 0,
    }));
  const hasPassword = user.password !== null;
  return [
    ...(hasPassword ? [{ strategy: 'password' }] : []),
    ...KIND_NAMES.flatMap((kind) => byCode(kind, KINDS[kind].strategy)),
    ...user.externalAccounts
      .filter((each) => !each.verification)
      .map(({ provider }) => ({ strategy: `oauth_${provider}` })),
    ...(hasPassword && canReset ? KIND_NAMES.flatMap((kind) => byCode(kind, KINDS[kind].reset)) : []),
  ];
}

/** A verification, or null if none has begun. */
export function verificationResource(verification: Verification | null): Resource | null {
  if (verification === null) return null;
  return {
    object: verificationObject(verification.strategy),
    status: verification.status,
    strategy: verification.strategy,
    attempts: verification.attempts,
    expire_at: verification.expireAt,
    external_verification_redirect_url: verification.social?.page ?? null,
    error: verification.error ?? null,
  };
}

/** Returns null until a code is requested. The sign-up component of the SDK requests a code when it reads null. */
function codeVerificationResource(verification: Verification | null, strategy: string): Resource | null {
  if (verification === null) return null;
  return {
    ...verificationResource(verification),
    next_action: verification.status === 'verified' ? '' : 'needs_attempt',
    supported_strategies: [strategy],
  };
}
