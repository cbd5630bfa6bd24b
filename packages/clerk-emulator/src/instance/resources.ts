import type {
  Client,
  ExternalAccount,
  Invitation,
  OrganizationInvitation,
  Session,
  SignInToken,
  Ticket,
  User,
  Verification,
} from './data';
import { KINDS, type Kind } from './identifiers';
import { imageUrl } from './images';
import type { Instance } from './instance';

/** A JSON object in Clerk's format. */
export type Resource = Record<string, unknown>;

/** Returns the object of a verification by a strategy. */
function verificationObject(strategy: string): string {
  if (strategy === 'password' || strategy === 'ticket') return `verification_${strategy}`;
  return strategy.startsWith('oauth_') ? 'verification_oauth' : 'verification_otp';
}

/** Returns fields of a row under Clerk's names, such as `created_at` for `createdAt`. */
export function clerkFields<Row>(row: Row, ...names: readonly (keyof Row & string)[]): Resource {
  const clerkName = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(names.map((name) => [clerkName(name), row[name]]));
}

/** The fields that most resources share. */
export const datedResource = (row: Pick<Client, 'id' | 'createdAt' | 'updatedAt'>) =>
  clerkFields(row, 'id', 'createdAt', 'updatedAt');

/** A user in responses of the Backend API and in events. */
export function userResource(user: User): Resource {
  return { ...publicUserResource(user), private_metadata: user.privateMetadata };
}

/** A user in responses of the Frontend API, without the private metadata. */
export function publicUserResource(user: User, memberships: readonly Resource[] = []): Resource {
  const { emails, phones, wallets } = user;
  return {
    object: 'user',
    ...clerkFields(user, 'id', 'externalId', 'username', 'banned', 'locked', 'updatedAt'),
    ...clerkFields(user, 'publicMetadata', 'unsafeMetadata', 'lastSignInAt'),
    ...userData(user),
    profile_image_url: userImage(user),
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
    last_active_at: user.lastSignInAt,
    deprovisioned: false,
    lockout_expires_in_seconds: null,
    verification_attempts_remaining: 100,
    ...user.settings,
    created_at: Math.floor(user.createdAt),
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
    first_name: account.firstName ?? '',
    last_name: account.lastName ?? '',
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
export function sessionResource(instance: Instance, session: Session): Resource {
  return {
    ...sessionBase(instance, session),
    ...clerkFields(session, 'userId', 'clientId', 'createdAt', 'updatedAt'),
    last_active_organization_id: session.organizationId,
  };
}

/** A sign-in or actor token. As in Clerk, each response contains its ticket, which is the secret that signs the user in. */
export function signInTokenResource(token: SignInToken, { origin }: URL): Resource {
  return {
    ...(token.actor ? { object: 'actor_token', actor: token.actor } : { object: 'sign_in_token' }),
    ...clerkFields(token, 'id', 'status', 'userId', 'createdAt', 'updatedAt'),
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
    ...clerkFields(invitation, 'id', 'publicMetadata', 'createdAt', 'updatedAt'),
    email_address: invitation.email,
    revoked: invitation.status === 'revoked',
    status: invitationStatus(instance, invitation),
    url: ticketLink(origin, invitation),
    expires_at: invitation.expireAt,
  };
}

/** A session in events, with its user. Clerk's SDK has the user. Its document does not. */
export function sessionEventResource(instance: Instance, session: Session, user: User): Resource {
  return { ...sessionResource(instance, session), user: userResource(user) };
}

/** Returns the status of a session. An active one is pending while its user has to choose an organization. */
export const sessionStatus = ({ settings }: Instance, { status, organizationId }: Session) =>
  status === 'active' && settings.organizationRequired && organizationId === null ? 'pending' : status;

/** The fields that all session resources share. */
export function sessionBase(instance: Instance, session: Session): Resource {
  return {
    object: 'session',
    ...clerkFields(session, 'id', 'expireAt', 'lastActiveAt'),
    status: sessionStatus(instance, session),
    abandon_at: session.expireAt,
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
export function deviceResource(instance: Instance, session: Session): Resource {
  const { userAgent = '' } = instance.store.clients.get(session.clientId) ?? {};
  const [part, name] = Object.entries(BROWSERS).find(([each]) => userAgent.includes(`${each}/`)) ?? [];
  const version = new RegExp(`${part}/([\\d.]+)`).exec(userAgent)?.[1];
  return {
    ...sessionBase(instance, session),
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

/** Returns the picture of a user, or else the initials. */
export const userImage = (user: User) =>
  imageUrl(
    user,
    [user.firstName, user.lastName].filter(Boolean).join(' ') || (user.username ?? user.email ?? ''),
  );

export function userData(user: User): Resource {
  return {
    ...clerkFields(user, 'firstName', 'lastName'),
    image_url: userImage(user),
    has_image: user.imageUrl !== null,
  };
}

/** The fields of a user that other members of an organization see. */
export function publicUserData(user: User): Resource {
  const identifier = user.email ?? user.phones[0]?.value ?? user.username ?? '';
  return { ...userData(user), identifier, user_id: user.id };
}

/** A verification, or null if none has begun. */
export function verificationResource(verification: Verification | null): Resource | null {
  if (verification === null) return null;
  return {
    object: verificationObject(verification.strategy),
    ...clerkFields(verification, 'status', 'strategy', 'attempts', 'expireAt'),
    external_verification_redirect_url: verification.social?.page ?? null,
    error: verification.error ?? null,
  };
}
