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

// By default, if the service runs on a `vercel.app` host with the keys of a production instance, the SDK sends Frontend API
// requests of browsers to `/__clerk` of that host. Only the local stack serves `/__clerk`.
process.env['CLERK_DISABLE_AUTO_PROXY'] = '1';
process.env['NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED'] = '1';
