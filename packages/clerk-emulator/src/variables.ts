import type { Instance } from './instance/instance';

/** Path of clerk-js 5, which older SDKs need. It contains the components that are a script of their own for newer SDKs. */
export const CLERK_JS_5_PATH = '/npm/@clerk/clerk-js@5/dist/clerk.browser.js';

export const CLERK_JS_PATH = '/npm/@clerk/clerk-js@6/dist/clerk.browser.js';
export const CLERK_UI_PATH = '/npm/@clerk/ui@1/dist/ui.browser.js';

/** Prefixes of the variables that frameworks pass to the browser: Next.js, Vite, Astro and SvelteKit, Nuxt, Expo. */
const PREFIXES = ['', 'NEXT_PUBLIC_', 'VITE_', 'PUBLIC_', 'NUXT_PUBLIC_', 'EXPO_PUBLIC_'];

/**
 * Returns the environment variables that make Clerk's SDKs use an emulator, with the address of its console and the secret of its
 * webhooks, if it has them.
 */
export function sdkVariables(
  { publishableKey, secretKey, signingKey }: Pick<Instance, 'publishableKey' | 'secretKey' | 'signingKey'>,
  url: string,
  consoleUrl: string | undefined,
  webhookSecret: string | undefined,
): Record<string, string> {
  const browser = {
    CLERK_PUBLISHABLE_KEY: publishableKey.text,
    // The SDKs derive an https:// address of the Frontend API from the publishable key, unless they have the URL of a proxy.
    CLERK_PROXY_URL: url,
    // Without the next two addresses, the SDKs would load their scripts from the host of CLERK_PROXY_URL with https. The
    // emulator serves only http.
    CLERK_JS_URL: url + CLERK_JS_PATH,
    CLERK_UI_URL: url + CLERK_UI_PATH,
    // Without the next two addresses, the SDKs of servers redirect to https://accounts.….
    CLERK_SIGN_IN_URL: `${url}/sign-in`,
    CLERK_SIGN_UP_URL: `${url}/sign-up`,
    CLERK_TELEMETRY_DISABLED: '1',
  };
  return {
    ...Object.fromEntries(
      PREFIXES.flatMap((prefix) => Object.entries(browser).map(([name, value]) => [prefix + name, value])),
    ),
    CLERK_API_URL: url,
    CLERK_FAPI_URL: url,
    CLERK_SECRET_KEY: secretKey,
    CLERK_JWT_KEY: signingKey.publicKeyPem,
    ...(consoleUrl && { CLERK_EMULATOR_CONSOLE_URL: consoleUrl }),
    ...(webhookSecret && {
      CLERK_WEBHOOK_SIGNING_SECRET: webhookSecret,
      CLERK_WEBHOOK_SECRET: webhookSecret,
    }),
  };
}

/** Returns the sources that the Content-Security-Policy of an application must allow. */
export const securityPolicy = (url: string) =>
  `script-src ${url}; connect-src ${url}; img-src ${url} data:; style-src 'unsafe-inline'; worker-src blob:`;
