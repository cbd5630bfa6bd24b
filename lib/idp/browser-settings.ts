import { environment } from '../env';

/** What the browser SDK needs to know of the instance; nothing of it is secret. */
export function browserSettings(): { publishableKey: string; proxyUrl?: string } {
  const { IDP_PUBLISHABLE_KEY, CLERK_FAPI_URL } = environment();
  return {
    publishableKey: IDP_PUBLISHABLE_KEY.key,
    // The local stack's stand-in answers behind this origin; a real instance is asked directly.
    ...(CLERK_FAPI_URL ? { proxyUrl: '/__clerk' } : {}),
  };
}

/** Where the local stack shows the mails that its stand-in sends to nobody. Undefined with any instance of the provider. */
export function mailsOnConsole(): string | undefined {
  const { CLERK_FAPI_URL, IDP_CONSOLE_URL } = environment();
  return CLERK_FAPI_URL === undefined ? undefined : IDP_CONSOLE_URL;
}
