import { z } from 'zod';
import { resource } from './differences';
import { BrowserUser, metadata, Token, text, time, Verification } from './resources';

/*
 * Resources that only the Frontend API has, as in its OpenAPI document of version 2026-05-12 (see resources.ts).
 */

const PublicUserData = resource('public user data', {
  first_name: text.nullable(),
  last_name: text.nullable(),
  image_url: text.nullish(),
  has_image: z.boolean(),
  identifier: text,
  profile_image_url: text.nullish(),
  user_id: text.nullish(),
  username: text.nullish(),
  banned: z.boolean().optional(),
  deprovisioned: z.boolean().optional(),
});

const sessionFields = {
  id: text,
  object: z.literal('session'),
  status: z.enum(['active', 'revoked', 'ended', 'expired', 'removed', 'abandoned', 'pending']),
  expire_at: time,
  abandon_at: time,
  last_active_at: time,
  last_active_token: Token.nullish(),
  actor: metadata.nullish(),
  tasks: z.array(z.strictObject({ key: text })).nullish(),
};

export const BrowserSession = resource('session', {
  ...sessionFields,
  last_active_organization_id: text.nullable(),
  user: BrowserUser.optional(),
  public_user_data: PublicUserData.nullable(),
  factor_verification_age: z.array(z.int()),
  created_at: time,
  updated_at: time,
});

export const ActiveSession = resource('active session', {
  ...sessionFields,
  latest_activity: resource('session activity', {
    object: text,
    id: text,
    device_type: text.optional(),
    is_mobile: z.boolean(),
    browser_name: text.optional(),
    browser_version: text.optional(),
    ip_address: text.optional(),
    city: text.optional(),
    country: text.optional(),
  }).optional(),
});

/** The OpenAPI document contains further strategies, for factors that the emulated instance does not offer. */
const Factor = resource('sign-in factor', {
  strategy: z.enum(['ticket', 'password', 'email_code', 'reset_password_email_code']),
  safe_identifier: text.optional(),
  email_address_id: text.optional(),
  primary: z.boolean().nullish(),
  external_verification_redirect_url: text.nullish(),
  default: z.boolean().optional(),
});

export const SignIn = resource('sign-in', {
  object: z.literal('sign_in_attempt'),
  id: text,
  status: z.enum([
    'abandoned',
    'needs_identifier',
    'needs_first_factor',
    'needs_second_factor',
    'needs_client_trust',
    'needs_new_password',
    'needs_protect_check',
    'complete',
  ]),
  supported_identifiers: z.array(
    z.enum(['email_address', 'phone_number', 'username', 'web3_wallet', 'passkey']),
  ),
  supported_first_factors: z.array(Factor).nullable(),
  supported_second_factors: z.array(Factor).nullable(),
  first_factor_verification: Verification.nullable(),
  second_factor_verification: Verification.nullable(),
  identifier: text.nullable(),
  user_data: resource('sign-in user data', {
    first_name: text.nullable(),
    last_name: text.nullable(),
    image_url: text.optional(),
    has_image: z.boolean(),
    profile_image_url: text.nullish(),
  }).nullable(),
  created_session_id: text.nullable(),
  abandon_at: time,
  client_trust_state: z.enum(['pending', 'new', 'known']).nullish(),
});

const nextStep = {
  next_action: z.enum(['needs_prepare', 'needs_attempt', '']),
  supported_strategies: z.array(text),
};
const [ByCode, , ByTicket] = Verification.options;

export const SignUp = resource('sign-up', {
  object: z.literal('sign_up_attempt'),
  id: text,
  status: z.enum(['abandoned', 'missing_requirements', 'complete']),
  required_fields: z.array(text),
  optional_fields: z.array(text),
  missing_fields: z.array(text),
  unverified_fields: z.array(text),
  verifications: resource('sign-up verifications', {
    email_address: z
      .discriminatedUnion('strategy', [ByCode.extend(nextStep), ByTicket.extend(nextStep)])
      .nullable(),
    phone_number: z.null(),
    web3_wallet: z.null(),
    external_account: z.null(),
  }),
  username: text.nullable(),
  email_address: text.nullable(),
  phone_number: text.nullable(),
  web3_wallet: text.nullable(),
  password_enabled: z.boolean(),
  first_name: text.nullable(),
  last_name: text.nullable(),
  unsafe_metadata: metadata.optional(),
  public_metadata: metadata.optional(),
  custom_action: z.boolean(),
  external_id: text.nullable(),
  created_session_id: text.nullable(),
  created_user_id: text.nullable(),
  abandon_at: time,
  legal_accepted_at: time.nullable(),
});

export const Reverification = resource('session reverification', {
  object: z.literal('session_reverification'),
  level: text,
  status: z.enum(['needs_first_factor', 'needs_second_factor', 'complete']),
  supported_first_factors: z.array(Factor).nullable(),
  supported_second_factors: z.array(Factor).nullable(),
  first_factor_verification: Verification.nullable(),
  second_factor_verification: Verification.nullable(),
  // Stricter than the OpenAPI document, which requires only some of these fields and allows any other field. The emulator
  // sends the same session resource as in its other responses.
  session: BrowserSession,
});

export const Client = resource('client', {
  object: z.literal('client'),
  id: text,
  sessions: z.array(BrowserSession),
  sign_in: SignIn.nullable(),
  sign_up: SignUp.nullable(),
  last_active_session_id: text.nullable(),
  last_authentication_strategy: text.nullable(),
  cookie_expires_at: time.nullable(),
  captcha_bypass: z.boolean(),
  created_at: time,
  updated_at: time,
}).nullable();

/** Returns the schema of a response that contains a resource and the new state of the client (Clerk's record of a browser). */
export const withClient = (response: z.ZodType) => z.strictObject({ response, client: Client });
