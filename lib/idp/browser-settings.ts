import { environment } from '../env';

/** Returns the settings of the browser SDK. They are public. */
export function browserSettings(): { publishableKey: string; proxyUrl?: string } {
  const { IDP_PUBLISHABLE_KEY, CLERK_FAPI_URL } = environment();
  return {
    publishableKey: IDP_PUBLISHABLE_KEY.key,
    // The local stack proxies its emulator on this origin. A real instance has an origin of its own.
    ...(CLERK_FAPI_URL ? { proxyUrl: '/__clerk' } : {}),
  };
}

/** Returns the address where the local stack shows the mails of its emulator. Undefined for a real instance. */
export function mailsOnConsole(): string | undefined {
  const { CLERK_FAPI_URL, IDP_CONSOLE_URL } = environment();
  return CLERK_FAPI_URL === undefined ? undefined : IDP_CONSOLE_URL;
}
