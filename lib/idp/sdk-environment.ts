/**
 * Copies the identity provider's keys to the variables that its SDK reads. Import this module for its side effect, before any
 * module of the SDK. A missing key is not an error here, because a build needs no keys. The start-up check reports a missing
 * key.
 */
const sdkNames = {
  IDP_SECRET_KEY: 'CLERK_SECRET_KEY',
  IDP_PUBLISHABLE_KEY: 'NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY',
} as const;

for (const [ours, theirs] of Object.entries(sdkNames)) {
  const value = process.env[ours]?.trim();
  if (value) process.env[theirs] = value;
}

// Without this variable, the SDK proxies the Frontend API of a production instance if the host is below `vercel.app`.
process.env['CLERK_DISABLE_AUTO_PROXY'] = '1';
process.env['NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED'] = '1';
