import type { DocumentHosts } from '../http/page';
import { clerkEnvironment } from './variables';

/** Returns the settings of Clerk's browser SDK. They are public. */
export function browserSettings(): { publishableKey: string; proxyUrl?: string } {
  const { IDP_PUBLISHABLE_KEY, CLERK_FAPI_URL } = clerkEnvironment();
  return {
    publishableKey: IDP_PUBLISHABLE_KEY.key,
    // On the local stack, this service proxies the Clerk emulator's Frontend API. A real Frontend API has an origin of its own.
    ...(CLERK_FAPI_URL ? { proxyUrl: '/__clerk' } : {}),
  };
}

/** Returns the address of the console that shows the e-mails of the local stack. Returns undefined for a real instance. */
export function mailsOnConsole(): string | undefined {
  const { CLERK_FAPI_URL, IDP_CONSOLE_URL } = clerkEnvironment();
  return CLERK_FAPI_URL === undefined ? undefined : IDP_CONSOLE_URL;
}

/**
 * Hosts of the provider's abuse and fraud protection. Every application needs them, because a sign-in can hang or fail if they
 * are blocked. These hosts also use ports other than 443, but only for fetches.
 * Source: https://clerk.com/docs/guides/secure/best-practices/csp-headers
 */
const PROTECTION = 'https://*.protect.clerk.com';
/** Avatars and logos. The provider's components also read them with `fetch`. */
const IMAGES = 'https://img.clerk.com';
/** The provider's bot protection. */
const BOT_PROTECTION = 'https://challenges.cloudflare.com';

/**
 * Returns the hosts that pages need for Clerk. The SDK's own `contentSecurityPolicy` option is not used, because it always adds
 * payment, map and telemetry hosts. A unit test compares the policy with the SDK's policy. On the local stack, the service proxies
 * the Frontend API on its own origin.
 */
export function documentHosts(): DocumentHosts | undefined {
  const { CLERK_FAPI_URL, IDP_PUBLISHABLE_KEY } = clerkEnvironment();
  if (CLERK_FAPI_URL !== undefined) return undefined;
  return {
    connect: `${IDP_PUBLISHABLE_KEY.frontendApi} ${IMAGES} ${PROTECTION}:*`,
    images: IMAGES,
    frames: `${BOT_PROTECTION} ${PROTECTION}`,
  };
}
