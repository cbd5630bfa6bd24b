import { z } from 'zod';
import { resource } from './differences';

/*
 * Schemas of the resources that the Frontend API and the Backend API share. Source: Clerk's OpenAPI documents of API version
 * 2026-05-12 (github.com/clerk/openapi-specs, state of 14 August 2026). Lists for features that the emulator does not have,
 * such as phone numbers, must be empty.
 */

export const text = z.string();
/** Milliseconds since the epoch. */
export const time = z.int();
export const metadata = z.record(z.string(), z.unknown());
const none = z.array(z.never());

const attempts = z.int().nullable();

/**
 * Verification by a code that Clerk sent, by a password or by a ticket (the secret string of a sign-in token or of an
 * invitation). Only Clerk's document of the Backend API requires `attempts`. The emulator sends it in both APIs, so this schema
 * requires it for both.
 */
export const Verification = z.discriminatedUnion('strategy', [
  z.strictObject({
    object: z.literal('verification_otp').optional(),
    status: z.enum(['unverified', 'verified', 'failed', 'expired']),
    strategy: z.enum(['phone_code', 'email_code', 'reset_password_email_code', 'reset_password_phone_code']),
    attempts,
    expire_at: time,
  }),
  z.strictObject({
    object: z.literal('verification_password').optional(),
    status: z.enum(['unverified', 'verified']),
    strategy: z.literal('password'),
    attempts,
    expire_at: time.nullish(),
  }),
  z.strictObject({
    object: z.literal('verification_ticket').optional(),
    status: z.enum(['unverified', 'verified', 'expired']),
    strategy: z.literal('ticket'),
    attempts,
    expire_at: time.nullable(),
  }),
]);

export const EmailAddress = resource('email address', {
  id: text,
  object: z.literal('email_address'),
  email_address: text,
  reserved: z.boolean(),
  verification: Verification.nullable(),
  linked_to: z.array(z.strictObject({ type: text, id: text })),
  matches_sso_connection: z.boolean().optional(),
  created_at: time,
  updated_at: time,
});

const userFields = {
  id: text,
  object: z.literal('user'),
  username: text.nullable(),
  first_name: text.nullable(),
  last_name: text.nullable(),
  image_url: text.optional(),
  profile_image_url: text.optional(),
  has_image: z.boolean(),
  primary_email_address_id: text.nullable(),
  primary_phone_number_id: text.nullable(),
  primary_web3_wallet_id: text.nullable(),
  password_enabled: z.boolean(),
  two_factor_enabled: z.boolean(),
  totp_enabled: z.boolean(),
  backup_code_enabled: z.boolean(),
  email_addresses: z.array(EmailAddress),
  phone_numbers: none,
  web3_wallets: none,
  passkeys: none,
  organization_memberships: none.optional(),
  external_accounts: none,
  saml_accounts: none,
  enterprise_accounts: none,
  password_last_updated_at: time.nullish(),
  public_metadata: metadata,
  unsafe_metadata: metadata.optional(),
  external_id: text.nullable(),
  last_sign_in_at: time.nullable(),
  last_active_at: time.nullable(),
  banned: z.boolean(),
  locked: z.boolean(),
  deprovisioned: z.boolean().optional(),
  lockout_expires_in_seconds: z.int().nullable(),
  verification_attempts_remaining: z.int().nullable(),
  delete_self_enabled: z.boolean(),
  create_organization_enabled: z.boolean(),
  create_organizations_limit: z.int().optional(),
  mfa_enabled_at: time.nullable(),
  mfa_disabled_at: time.nullable(),
  legal_accepted_at: time.nullable(),
  created_at: time,
  updated_at: time,
};

/**
 * A user as the Frontend API returns it. Clerk's document also allows private metadata. This schema does not, because a browser
 * must not see private metadata.
 */
export const BrowserUser = resource('user', userFields);

/** A user as the Backend API returns it and as webhooks contain it. */
export const BackendUser = resource('user', {
  ...userFields,
  locale: text.nullish(),
  private_metadata: metadata.nullish(),
  bypass_client_trust: z.boolean().optional(),
  scim: z.unknown().optional(),
});

export const DeletedObject = resource('deleted object', {
  object: text,
  id: text.optional(),
  slug: text.optional(),
  deleted: z.literal(true),
  external_id: text.optional(),
});

export const Token = resource('token', { object: z.literal('token').optional(), jwt: text });

export const JsonWebKeySet = z.strictObject({
  keys: z.array(
    resource('json web key', {
      kid: text,
      alg: text,
      use: text,
      kty: z.literal('RSA'),
      n: text,
      e: text,
      x5c: z.array(text).optional(),
      x5t: text.optional(),
      'x5t#S256': text.optional(),
      x5u: text.optional(),
    }),
  ),
});

export const Errors = resource('errors', {
  errors: z
    .array(resource('error', { message: text, long_message: text, code: text, meta: metadata.optional() }))
    .min(1),
  meta: metadata.optional(),
  clerk_trace_id: text.optional(),
});
