import type { SignIn, SignUp, User, Verification } from './data';
import { isVerified, KIND_NAMES, KINDS, type Kind } from './identifiers';
import type { Instance } from './instance';
import { clerkFields, type Resource, userData, verificationResource } from './resources';
import type { Settings } from './settings';

/** An attempt to sign in, with the strategies that its user may choose from. */
export function signInResource({ settings, store }: Instance, signIn: SignIn): Resource {
  const user = store.users.get(signIn.userId ?? '');
  return {
    object: 'sign_in_attempt',
    ...clerkFields(signIn, 'id', 'status', 'identifier', 'createdSessionId', 'abandonAt'),
    supported_identifiers: identificationStrategies(settings),
    supported_first_factors: user && signIn.status !== 'complete' ? firstFactors(user, true) : null,
    supported_second_factors: null,
    first_factor_verification: verificationResource(signIn.verification),
    second_factor_verification: null,
    user_data: user ? userData(user) : null,
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
    ...clerkFields(signUp, 'id', 'status', 'username', 'firstName', 'lastName', 'unsafeMetadata'),
    ...clerkFields(signUp, 'createdSessionId', 'createdUserId', 'abandonAt', 'legalAcceptedAt'),
    required_fields: [...(isOptional ? [] : ['email_address']), 'password'],
    optional_fields: [
      ...identificationStrategies(settings).filter((name) => isOptional || name !== 'email_address'),
      'first_name',
      'last_name',
    ],
    missing_fields: missingFields(signUp, settings),
    unverified_fields: unverifiedFields(signUp, settings),
    email_address: email,
    phone_number: phone,
    web3_wallet: null,
    has_password: signUp.password !== null,
    password_enabled: signUp.password !== null,
    custom_action: false,
    external_id: null,
    public_metadata: {},
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

/** Returns null until a code is requested. The sign-up component of the SDK requests a code when it reads null. */
function codeVerificationResource(verification: Verification | null, strategy: string): Resource | null {
  if (verification === null) return null;
  return {
    ...verificationResource(verification),
    next_action: verification.status === 'verified' ? '' : 'needs_attempt',
    supported_strategies: [strategy],
  };
}
