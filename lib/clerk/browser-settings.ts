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
