import { z } from 'zod';
import { parse } from '../http';
import { ApiError, parameterError } from '../instance/api-error';
import { Verification } from '../instance/data';
import type { Instance } from '../instance/instance';
import { type BrowserRequest, requireOwnPage } from './browser';

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
    throw parameterError('unknown', name);
  }
}

const SocialRequest = z.object({ strategy: z.string(), redirect_url: z.string() });
const SOCIAL_MILLISECONDS = 10 * 60 * 1000;

/**
 * Returns a verification on the page of a social provider. The attempt is a sign-in, a sign-up or an external account. Throws
 * Clerk's 422 unless the strategy is that of an enabled provider, such as `oauth_google`, and a 400 for a page of another site.
 */
export function socialVerification(
  instance: Instance,
  request: BrowserRequest,
  attemptId: string,
): Verification {
  const { strategy, redirect_url } = parse(SocialRequest, request.body);
  const provider = strategy.replace(/^oauth_/, '');
  if (!strategy.startsWith('oauth_') || !instance.settings.socialProviders.includes(provider)) {
    const message = `${strategy} does not match one of the allowed values for parameter strategy.`;
    throw new ApiError(422, 'form_param_value_invalid', message, 'strategy');
  }
  const returnUrl = requireOwnPage(instance, request, redirect_url).href;
  const page = `${request.url.origin}/social/${provider}?attempt=${attemptId}`;
  const expireAt = instance.clock.now() + SOCIAL_MILLISECONDS;
  return Verification.parse({ strategy, expireAt, social: { page, returnUrl } });
}
