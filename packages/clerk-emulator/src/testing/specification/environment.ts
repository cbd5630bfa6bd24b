import { z } from 'zod';
import { resource } from './differences';
import { text, time } from './resources';

/*
 * Settings of an instance, as in the OpenAPI document of Clerk's Frontend API, version 2026-05-12 (see resources.ts).
 */

const flag = z.boolean();
const enabled = z.strictObject({ enabled: flag });
const requirement = z.enum(['on', 'off', 'required']);

const AuthConfig = resource('auth config', {
  object: z.literal('auth_config'),
  id: text,
  first_name: requirement,
  last_name: requirement,
  email_address: requirement,
  phone_number: requirement,
  username: requirement,
  password: requirement,
  identification_requirements: z.array(z.array(text)),
  identification_strategies: z.array(text),
  first_factors: z.array(text),
  second_factors: z.array(text),
  email_address_verification_strategies: z.array(text),
  single_session_mode: flag,
  enhanced_email_deliverability: flag,
  test_mode: flag,
  cookieless_dev: flag.optional(),
  url_based_session_syncing: flag,
  claimed_at: time.nullable(),
  reverification: flag,
  native_settings: resource('native settings', {
    object: z.literal('native_settings'),
    api_enabled: flag,
    trusted_device_sign_in_enabled: flag,
    trusted_device_enrollment_prompt_after_sign_in_enabled: flag,
    trusted_device_enrollment_prompt_after_sign_up_enabled: flag,
  }),
});

const Image = z.strictObject({ object: text, id: text, name: text, public_url: text }).partial();

const DisplayConfig = resource('display config', {
  object: z.literal('display_config'),
  id: text,
  instance_environment_type: z.enum(['production', 'development', 'staging']),
  application_name: text,
  theme: z.looseObject({}),
  preferred_sign_in_strategy: z.enum(['password', 'otp']),
  logo_image_url: text.nullish(),
  favicon_image_url: text.nullish(),
  home_url: text,
  sign_in_url: text,
  sign_up_url: text,
  user_profile_url: text,
  waitlist_url: text,
  oauth_consent_url: text,
  after_sign_in_url: text,
  after_sign_up_url: text,
  after_sign_out_one_url: text,
  after_sign_out_all_url: text,
  after_switch_session_url: text,
  after_join_waitlist_url: text,
  organization_profile_url: text,
  create_organization_url: text,
  after_leave_organization_url: text,
  after_create_organization_url: text,
  logo_link_url: text,
  support_email: text.nullable(),
  branded: flag,
  experimental_force_oauth_first: flag,
  clerk_js_version: text.nullable(),
  show_devmode_warning: flag,
  google_one_tap_client_id: text.nullable(),
  help_url: text.nullable(),
  privacy_policy_url: text.nullable(),
  terms_url: text.nullable(),
  logo_url: text.nullable(),
  favicon_url: text.nullable(),
  logo_image: Image.nullable(),
  favicon_image: Image.nullable(),
  captcha_public_key: text.nullable(),
  captcha_widget_type: z.enum(['smart', 'invisible']).nullable(),
  captcha_public_key_invisible: text.nullable(),
  captcha_provider: z.literal('turnstile').nullable(),
  captcha_oauth_bypass: z.array(text),
  captcha_heartbeat: flag.nullish(),
});

const Attribute = resource('attribute', {
  enabled: flag,
  required: flag,
  used_for_first_factor: flag,
  first_factors: z.array(text),
  used_for_second_factor: flag,
  second_factors: z.array(text),
  verifications: z.array(text),
  verify_at_sign_up: flag,
  immutable: flag,
});

const EnterpriseSso = resource('enterprise sso', { enabled: flag, self_serve_sso: flag.optional() });

const UserSettings = resource('user settings', {
  attributes: resource('attributes', {
    email_address: Attribute,
    phone_number: Attribute,
    username: Attribute,
    web3_wallet: Attribute,
    first_name: Attribute,
    last_name: Attribute,
    password: Attribute,
    authenticator_app: Attribute,
    ticket: Attribute,
    backup_code: Attribute,
    passkey: Attribute,
  }),
  // The emulated instance has no social connections, such as a sign-in with Google.
  social: z.strictObject({}),
  saml: EnterpriseSso,
  enterprise_sso: EnterpriseSso,
  sign_in: z.strictObject({ second_factor: z.strictObject({ required: flag }) }),
  sign_up: resource('sign-up settings', {
    captcha_enabled: flag,
    captcha_widget_type: z.enum(['smart', 'invisible']),
    custom_action_required: flag,
    progressive: flag,
    mode: z.enum(['public', 'restricted', 'waitlist']),
    legal_consent_enabled: flag,
  }),
  restrictions: resource('restrictions', {
    allowlist: enabled,
    blocklist: enabled,
    allowlist_blocklist_disabled_on_sign_in: enabled,
    block_email_subaddresses: enabled,
    block_disposable_email_domains: enabled,
  }),
  password_settings: resource('password settings', {
    disable_hibp: flag,
    disable_password_reverification: flag,
    min_length: z.int(),
    max_length: z.int(),
    require_special_char: flag,
    require_numbers: flag,
    require_uppercase: flag,
    require_lowercase: flag,
    show_zxcvbn: flag,
    min_zxcvbn_strength: z.int(),
    enforce_hibp_on_sign_in: flag,
    allowed_special_characters: text,
  }),
  username_settings: resource('username settings', {
    min_length: z.int().nullable(),
    max_length: z.int().nullable(),
    allow_extended_special_characters: flag,
    allow_numeric_usernames: flag,
  }),
  actions: resource('actions', {
    delete_self: flag,
    create_organization: flag,
    create_organizations_limit: flag.nullable(),
  }),
  attack_protection: resource('attack protection', {
    user_lockout: z.strictObject({ enabled: flag, max_attempts: z.int(), duration_in_minutes: z.int() }),
    pii: enabled,
    email_link: z.strictObject({ require_same_client: flag }),
    enumeration_protection: enabled,
  }),
  passkey_settings: resource('passkey settings', {
    allow_autofill: flag,
    show_sign_in_button: flag,
    satisfies_second_factor: flag,
  }),
});

const OrganizationSettings = resource('organization settings', {
  enabled: flag,
  max_allowed_memberships: z.int(),
  actions: z.strictObject({ admin_delete: flag }),
  domains: z.strictObject({
    enabled: flag,
    enrollment_modes: z.array(z.enum(['manual_invitation', 'automatic_invitation', 'automatic_suggestion'])),
    default_role: text,
  }),
  slug: z.strictObject({ disabled: flag }).optional(),
  creator_role: text,
});

const Plans = z.strictObject({ enabled: flag.optional(), has_paid_plans: flag.optional() });

/**
 * Response to `GET /v1/environment`. The OpenAPI document does not require any of its fields. This schema requires the
 * fields that clerk-js reads.
 */
export const Environment = resource('environment', {
  auth_config: AuthConfig,
  display_config: DisplayConfig,
  user_settings: UserSettings,
  organization_settings: OrganizationSettings,
  fraud_settings: z.strictObject({
    object: z.literal('fraud_settings').optional(),
    native: z.strictObject({ device_attestation_mode: z.enum(['disabled', 'onboarding', 'enforced']) }),
  }),
  commerce_settings: z.strictObject({
    billing: z.strictObject({
      stripe_publishable_key: text.nullish(),
      free_trial_requires_payment_method: flag.optional(),
      user: Plans.optional(),
      organization: Plans.optional(),
    }),
  }),
  api_keys_settings: z.strictObject({
    enabled: flag,
    user_api_keys_enabled: flag,
    orgs_api_keys_enabled: flag,
  }),
  protect_config: z.unknown().optional(),
  client_debug_mode: flag,
  partitioned_cookies: flag,
  maintenance_mode: flag,
});
