import { environment } from '../env';

/** Returns the settings of the browser SDK. They are public. */
export function browserSettings(): { publishableKey: string; proxyUrl?: string } {
  const { IDP_PUBLISHABLE_KEY, CLERK_FAPI_URL } = environment();
  return {
    publishableKey: IDP_PUBLISHABLE_KEY.key,
    // On the local stack, this service proxies the Frontend API of its emulator. A real instance has its own origin.
    ...(CLERK_FAPI_URL ? { proxyUrl: '/__clerk' } : {}),
  };
}

/** Returns the address where the local stack shows e-mails of its emulator. Returns undefined for a real instance. */
export function mailsOnConsole(): string | undefined {
  const { CLERK_FAPI_URL, IDP_CONSOLE_URL } = environment();
  return CLERK_FAPI_URL === undefined ? undefined : IDP_CONSOLE_URL;
}
