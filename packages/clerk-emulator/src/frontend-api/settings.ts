import { ApiError } from '../instance/api-error';
import type { Instance } from '../instance/instance';

/** The parameters that a setting permits. */
const SETTINGS = new Map([
  ['username', 'usernames'],
  ['phone_number', 'phoneNumbers'],
] as const);

/** Throws Clerk's 422 for a field of a form whose setting is off. */
export function requireSetting(
  { settings }: Pick<Instance, 'settings'>,
  body: Readonly<Record<string, unknown>>,
  ...names: readonly string[]
): void {
  for (const [name, setting] of SETTINGS) {
    if (!names.includes(name) || !body[name] || settings[setting]) continue;
    throw new ApiError(422, 'form_param_unknown', `${name} is not a valid parameter for this request.`, name);
  }
}

/** Throws Clerk's 422 unless the strategy is that of an enabled social provider, such as `oauth_google`. */
export function requireProvider({ settings }: Pick<Instance, 'settings'>, strategy: string): string {
  const provider = strategy.replace(/^oauth_/, '');
  if (strategy.startsWith('oauth_') && settings.socialProviders.includes(provider)) return provider;
  const message = `${strategy} does not match one of the allowed values for parameter strategy.`;
  throw new ApiError(422, 'form_param_value_invalid', message, 'strategy');
}
