import type { Session, User } from './data';

/** The provider draws one for a user who has none; inline, so that no host is asked. */
export const AVATAR = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" fill="#8a8f98"/><circle cx="16" cy="12" r="6" fill="#fff"/><path d="M4 32a12 12 0 0 1 24 0" fill="#fff"/></svg>',
)}`;

/** A user as the Backend API answers it and as events carry it. */
export function userResource(user: User): Record<string, unknown> {
  return { ...publicUserResource(user), private_metadata: user.privateMetadata };
}

/** A user as the browser may see it: without the private metadata. */
export function publicUserResource(user: User): Record<string, unknown> {
  return {
    id: user.id,
    object: 'user',
    external_id: user.externalId,
    username: null,
    first_name: user.firstName,
    last_name: user.lastName,
    locale: null,
    image_url: AVATAR,
    profile_image_url: AVATAR,
    has_image: false,
    primary_email_address_id: user.emailId,
    primary_phone_number_id: null,
    primary_web3_wallet_id: null,
    email_addresses: [emailAddressResource(user)],
    phone_numbers: [],
    web3_wallets: [],
    external_accounts: [],
    enterprise_accounts: [],
    saml_accounts: [],
    passkeys: [],
    organization_memberships: [],
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
    banned: false,
    locked: false,
    lockout_expires_in_seconds: null,
    verification_attempts_remaining: 100,
    create_organization_enabled: false,
    create_organizations_limit: null,
    delete_self_enabled: true,
    legal_accepted_at: null,
    created_at: user.createdAt,
    updated_at: user.updatedAt,
  };
}

/** The one address of a user, always verified. */
export function emailAddressResource(user: User): Record<string, unknown> {
  return {
    id: user.emailId,
    object: 'email_address',
    email_address: user.email,
    reserved: false,
    linked_to: [],
    matches_sso_connection: false,
    verification: {
      object: 'verification_email_code',
      status: 'verified',
      strategy: 'email_code',
      attempts: 1,
      expire_at: null,
    },
    created_at: user.createdAt,
    updated_at: user.createdAt,
  };
}

/** What is left of a deleted user. */
export function deletedUserResource(user: User): Record<string, unknown> {
  const externalId = user.externalId === null ? {} : { external_id: user.externalId };
  return { id: user.id, object: 'user', deleted: true, ...externalId };
}

/** A session as the Backend API answers it and as events carry it. */
export function sessionResource(session: Session): Record<string, unknown> {
  return {
    id: session.id,
    object: 'session',
    status: session.status,
    user_id: session.userId,
    client_id: session.clientId,
    last_active_organization_id: null,
    actor: null,
    last_active_at: session.lastActiveAt,
    expire_at: session.expireAt,
    abandon_at: session.expireAt,
    created_at: session.createdAt,
    updated_at: session.updatedAt,
  };
}
