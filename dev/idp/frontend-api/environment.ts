import { PASSWORD_LENGTH } from '../instance/accounts';
import type { Instance } from '../instance/instance';

const ATTRIBUTES = [
  'email_address',
  'phone_number',
  'username',
  'web3_wallet',
  'first_name',
  'last_name',
  'password',
  'authenticator_app',
  'backup_code',
  'passkey',
] as const;

/** The instance's settings, by which the SDK's components decide what to show. */
export function environment(instance: Instance): Record<string, unknown> {
  const { development } = instance.publishableKey;
  return {
    object: 'environment',
    id: 'env_stand_in',
    maintenance_mode: false,
    auth_config: {
      object: 'auth_config',
      id: 'aac_stand_in',
      single_session_mode: true,
      claimed_at: null,
      reverification: false,
      session_minter: false,
    },
    display_config: displayConfig(development),
    user_settings: userSettings(instance.verifyEmailAtSignUp),
    organization_settings: {
      enabled: false,
      max_allowed_memberships: 0,
      force_organization_selection: false,
      actions: { admin_delete: false },
      domains: { enabled: false, enrollment_modes: [], default_role: null },
      slug: { disabled: true },
      organization_creation_defaults: { enabled: false },
    },
    commerce_settings: {
      billing: {
        stripe_publishable_key: null,
        user: { enabled: false, has_paid_plans: false },
        organization: { enabled: false, has_paid_plans: false },
      },
    },
    api_keys_settings: { user_api_keys_enabled: false, orgs_api_keys_enabled: false },
    protect_config: null,
  };
}

function displayConfig(development: boolean) {
  return {
    object: 'display_config',
    id: 'display_config_stand_in',
    application_name: 'Identity link',
    instance_environment_type: development ? 'development' : 'production',
    branded: false,
    captcha_public_key: null,
    captcha_public_key_invisible: null,
    captcha_widget_type: null,
    captcha_provider: null,
    captcha_oauth_bypass: [],
    preferred_sign_in_strategy: 'password',
    show_devmode_warning: false,
    home_url: '/',
    sign_in_url: '/sign-in',
    sign_up_url: '/sign-up',
    after_sign_in_url: '/',
    after_sign_up_url: '/',
    after_sign_out_all_url: '/',
    after_sign_out_one_url: '/',
    after_switch_session_url: '/',
    theme: { buttons: {}, general: {}, accounts: {} },
  };
}

function userSettings(verifyEmailAtSignUp: boolean) {
  const disabled = {
    enabled: false,
    required: false,
    verifications: [],
    used_for_first_factor: false,
    first_factors: [],
    used_for_second_factor: false,
    second_factors: [],
    verify_at_sign_up: false,
  };
  return {
    attributes: {
      ...Object.fromEntries(ATTRIBUTES.map((name) => [name, disabled])),
      email_address: {
        ...disabled,
        enabled: true,
        required: true,
        // One address for each user: the profile offers no second one.
        immutable: true,
        verifications: ['email_code'],
        used_for_first_factor: true,
        first_factors: ['email_code'],
        verify_at_sign_up: verifyEmailAtSignUp,
      },
      password: { ...disabled, enabled: true, required: true },
      first_name: { ...disabled, enabled: true },
      last_name: { ...disabled, enabled: true },
    },
    social: {},
    enterprise_sso: { enabled: false, self_serve_sso: false, self_serve_directory_sync: false },
    sign_in: { second_factor: { required: false, enabled: false } },
    sign_up: {
      mode: 'public',
      captcha_enabled: false,
      progressive: true,
      legal_consent_enabled: false,
      allowlist_only: false,
    },
    password_settings: {
      min_length: PASSWORD_LENGTH.least,
      max_length: PASSWORD_LENGTH.most,
      show_zxcvbn: false,
      min_zxcvbn_strength: 0,
      disable_hibp: true,
      require_special_char: false,
      require_numbers: false,
      require_uppercase: false,
      require_lowercase: false,
      allowed_special_characters: '',
    },
    passkey_settings: { allow_autofill: false, show_sign_in_button: false },
    username_settings: { min_length: 4, max_length: 64 },
    attack_protection: { enumeration_protection: { enabled: false } },
    actions: { delete_self: true, create_organization: false },
  };
}
