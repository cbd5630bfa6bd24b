/** Addresses, keys and secrets that an application shares with the emulator. */
interface Shared {
  readonly url: string;
  /** Undefined without a console. */
  readonly consoleUrl: string | undefined;
  readonly publishableKey: string;
  readonly secretKey: string;
  readonly publicKeyPem: string;
  /** Undefined without a webhook endpoint. */
  readonly webhookSecret: string | undefined;
}

/** Returns the environment variables that make Clerk's SDKs use an emulator, and the address of its console. */
export function sdkVariables({
  url,
  consoleUrl,
  publishableKey,
  secretKey,
  publicKeyPem,
  webhookSecret,
}: Shared): Record<string, string> {
  const browser = {
    CLERK_PUBLISHABLE_KEY: publishableKey,
    // The SDKs derive an https:// address of the Frontend API from the publishable key, unless they have the URL of a proxy.
    CLERK_PROXY_URL: url,
    // Without the next two addresses, the SDKs would load their scripts from the host of CLERK_PROXY_URL with https. The
    // emulator serves only http.
    CLERK_JS_URL: `${url}/npm/@clerk/clerk-js@6/dist/clerk.browser.js`,
    CLERK_UI_URL: `${url}/npm/@clerk/ui@1/dist/ui.browser.js`,
    CLERK_TELEMETRY_DISABLED: '1',
  };
  return {
    ...browser,
    ...Object.fromEntries(Object.entries(browser).map(([name, value]) => [`NEXT_PUBLIC_${name}`, value])),
    CLERK_API_URL: url,
    CLERK_FAPI_URL: url,
    CLERK_SECRET_KEY: secretKey,
    CLERK_JWT_KEY: publicKeyPem,
    ...(consoleUrl === undefined ? {} : { CLERK_EMULATOR_CONSOLE_URL: consoleUrl }),
    ...(webhookSecret === undefined ? {} : { CLERK_WEBHOOK_SIGNING_SECRET: webhookSecret }),
  };
}
