import { PASSWORD_LENGTH, USERNAME_LENGTH } from '../instance/accounts';
import { identificationStrategies } from '../instance/attempt-resources';
import { KIND_NAMES, KINDS } from '../instance/identifiers';
import { imageUrl } from '../instance/images';
import type { Instance } from '../instance/instance';
import type { Settings } from '../instance/settings';

const ATTRIBUTES =
  'email_address phone_number username web3_wallet first_name last_name password authenticator_app ' +
  'ticket backup_code passkey';
/** Addresses of pages that a user sees after an action. */
const NEXT_PAGES =
  'home_url after_sign_in_url after_sign_up_url after_sign_out_one_url after_sign_out_all_url ' +
  'after_switch_session_url after_join_waitlist_url after_leave_organization_url ' +
  'after_create_organization_url logo_link_url';
/** Images, texts and keys that the instance does not have. */
const MISSING =
  'logo_image_url favicon_image_url support_email google_one_tap_client_id help_url privacy_policy_url ' +
  'terms_url logo_url favicon_url logo_image favicon_image captcha_public_key captcha_widget_type ' +
  'captcha_public_key_invisible captcha_provider';

/** Returns an object that has the same value for each name in a text. */
const repeat = <Value>(names: string, value: Value) =>
  Object.fromEntries(names.split(' ').map((name) => [name, value]));

const off = (names: string) => repeat(names, false);

/** Returns the settings of the instance. The components of the SDK derive their fields and steps from these settings. */
export function environment(instance: Instance, { origin }: URL): Record<string, unknown> {
  const { settings, publishableKey } = instance;
  return {
    auth_config: authConfig(publishableKey.development, settings),
    display_config: displayConfig(publishableKey.development, origin),
    user_settings: userSettings(settings),
    organization_settings: {
      enabled: true,
      force_organization_selection: settings.organizationRequired,
      max_allowed_memberships: 5,
      actions: { admin_delete: true },
      domains: { enabled: false, enrollment_modes: [], default_role: 'org:member' },
      slug: { disabled: false },
      creator_role: 'org:admin',
    },
    fraud_settings: { object: 'fraud_settings', native: { device_attestation_mode: 'disabled' } },
    commerce_settings: {
      billing: {
        stripe_publishable_key: null,
        free_trial_requires_payment_method: true,
        user: off('enabled has_paid_plans'),
        organization: off('enabled has_paid_plans'),
      },
    },
    api_keys_settings: off('enabled user_api_keys_enabled orgs_api_keys_enabled'),
    ...off('client_debug_mode partitioned_cookies maintenance_mode'),
  };
}

function authConfig(development: boolean, settings: Settings) {
  const { multiSession, usernames, phoneNumbers } = settings;
  return {
    object: 'auth_config',
    id: 'aac_emulator',
    first_name: 'on',
    last_name: 'on',
    email_address: phoneNumbers ? 'on' : 'required',
    phone_number: phoneNumbers ? 'on' : 'off',
    username: usernames ? 'on' : 'off',
    password: 'required',
    identification_requirements: [phoneNumbers ? ['email_address', 'phone_number'] : ['email_address']],
    identification_strategies: [...identificationStrategies(settings), ...Object.keys(social(settings))],
    first_factors: [
      ...KIND_NAMES.slice(0, phoneNumbers ? 2 : 1).flatMap((kind) => [
        KINDS[kind].strategy,
        KINDS[kind].reset,
      ]),
      'password',
      'ticket',
      ...Object.keys(social(settings)),
    ],
    second_factors: [],
    email_address_verification_strategies: ['email_code'],
    single_session_mode: !multiSession,
    enhanced_email_deliverability: false,
    ...repeat('test_mode cookieless_dev url_based_session_syncing', development),
    claimed_at: null,
    reverification: settings.reverification,
    native_settings: {
      object: 'native_settings',
      ...off('api_enabled trusted_device_sign_in_enabled'),
      ...off('trusted_device_enrollment_prompt_after_sign_in_enabled'),
      ...off('trusted_device_enrollment_prompt_after_sign_up_enabled'),
    },
  };
}

/** Clerk's SDKs use the account portal unless an application names pages of its own. */
function displayConfig(development: boolean, portal: string) {
  return {
    object: 'display_config',
    ...repeat(NEXT_PAGES, '/'),
    ...repeat(MISSING, null),
    id: 'display_config_emulator',
    instance_environment_type: development ? 'development' : 'production',
    application_name: 'your application',
    theme: { buttons: {}, general: {}, accounts: {} },
    preferred_sign_in_strategy: 'password',
    sign_in_url: `${portal}/sign-in`,
    sign_up_url: `${portal}/sign-up`,
    user_profile_url: `${portal}/user`,
    waitlist_url: `${portal}/waitlist`,
    oauth_consent_url: `${portal}/oauth-consent`,
    organization_profile_url: `${portal}/organization`,
    create_organization_url: `${portal}/create-organization`,
    clerk_js_version: '6',
    captcha_oauth_bypass: [],
    ...off('branded experimental_force_oauth_first show_devmode_warning captcha_heartbeat'),
  };
}

function userSettings(settings: Settings) {
  const disabled = off('enabled');
  return {
    attributes: attributes(settings),
    social: social(settings),
    saml: off('enabled self_serve_sso'),
    enterprise_sso: off('enabled self_serve_sso'),
    sign_in: { second_factor: { required: false } },
    sign_up: {
      captcha_enabled: false,
      captcha_widget_type: 'smart',
      custom_action_required: false,
      progressive: true,
      mode: settings.waitlist ? 'waitlist' : 'public',
      legal_consent_enabled: false,
    },
    restrictions: {
      ...repeat('allowlist blocklist allowlist_blocklist_disabled_on_sign_in', disabled),
      ...repeat('block_email_subaddresses block_disposable_email_domains', disabled),
    },
    password_settings: {
      disable_hibp: true,
      min_length: PASSWORD_LENGTH.least,
      max_length: PASSWORD_LENGTH.most,
      min_zxcvbn_strength: 0,
      allowed_special_characters: '',
      ...off('require_special_char require_numbers require_uppercase require_lowercase'),
      ...off('disable_password_reverification show_zxcvbn enforce_hibp_on_sign_in'),
    },
    username_settings: {
      min_length: USERNAME_LENGTH.least,
      max_length: USERNAME_LENGTH.most,
      ...off('allow_extended_special_characters allow_numeric_usernames'),
    },
    actions: { delete_self: true, create_organization: true, create_organizations_limit: null },
    attack_protection: {
      user_lockout: { enabled: false, max_attempts: 100, duration_in_minutes: 60 },
      pii: { enabled: true },
      email_link: { require_same_client: false },
      enumeration_protection: disabled,
    },
    passkey_settings: off('allow_autofill show_sign_in_button satisfies_second_factor'),
  };
}

function attributes({ verifyEmailAtSignUp, usernames, phoneNumbers }: Settings) {
  const disabled = {
    ...off('enabled required used_for_first_factor used_for_second_factor verify_at_sign_up immutable'),
    ...repeat('first_factors second_factors verifications', []),
  };
  const byCode = (strategy: string, verify: boolean) => ({
    ...disabled,
    enabled: true,
    used_for_first_factor: true,
    first_factors: [strategy],
    verifications: [strategy],
    verify_at_sign_up: verify,
  });
  return {
    ...repeat(ATTRIBUTES, disabled),
    email_address: { ...byCode('email_code', verifyEmailAtSignUp), required: !phoneNumbers },
    ...(phoneNumbers && { phone_number: byCode('phone_code', true) }),
    username: { ...disabled, enabled: usernames, used_for_first_factor: usernames },
    password: { ...disabled, enabled: true, required: true },
    first_name: { ...disabled, enabled: true },
    last_name: { ...disabled, enabled: true },
  };
}

/** Returns the social providers by strategy. */
const social = ({ socialProviders }: Settings) =>
  Object.fromEntries(
    socialProviders.map((provider) => [
      `oauth_${provider}`,
      {
        enabled: true,
        required: false,
        authenticatable: true,
        block_email_subaddresses: false,
        strategy: `oauth_${provider}`,
        not_selectable: false,
        deprecated: false,
        name: provider.replace(/^(custom_)?./, (start) => start.replace('custom_', '').toUpperCase()),
        logo_url: imageUrl({ id: provider, imageUrl: null }, provider.replace('custom_', '')),
      },
    ]),
  );
