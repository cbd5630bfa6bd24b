import { ApiError } from '../instance/api-error';
import type { Instance } from '../instance/instance';

/** Throws Clerk's 422 for a field whose setting is off, and for a strategy of a social provider, which the emulator lacks. */
export function requireSettings({ settings }: Instance, body: Readonly<Record<string, unknown>>): void {
  const off = ['phone_number', ...(settings.usernames ? [] : ['username'])].find((name) => body[name]);
  const strategy = String(body['strategy'] ?? '');
  if (off !== undefined)
    throw new ApiError(422, 'form_param_unknown', `${off} is not a valid parameter for this request.`, off);
  if (!strategy.startsWith('oauth_')) return;
  const message = `${strategy} does not match one of the allowed values for parameter strategy.`;
  throw new ApiError(422, 'form_param_value_invalid', message, 'strategy');
}
