/**
 * Copies the identity provider's keys to the names under which its SDK reads them (contract 5.1, 8.2). Import this module for
 * its effect, before any module of the SDK. An unset key stays unset: a build needs no keys, and the start-up check rejects it.
 */
const sdkNames = {
  IDP_SECRET_KEY: 'CLERK_SECRET_KEY',
  IDP_PUBLISHABLE_KEY: 'NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY',
} as const;

for (const [ours, theirs] of Object.entries(sdkNames)) {
  const value = process.env[ours]?.trim();
  if (value) process.env[theirs] = value;
}

// Otherwise the SDK proxies the provider for a production instance on a host of the platform's domain.
process.env['CLERK_DISABLE_AUTO_PROXY'] = '1';
process.env['NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED'] = '1';
