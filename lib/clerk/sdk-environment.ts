/**
 * Decides which variables the provider's SDK sees: its keys, and the addresses that the local stack sets. Removes all others,
 * because one of another project, such as NEXT_PUBLIC_CLERK_IS_SATELLITE, would make every request fail. Import this module for
 * its side effect, before any module of the SDK. A build needs no keys.
 */
for (const name of Object.keys(process.env))
  if (/^(?:NEXT_PUBLIC_)?CLERK_(?!F?API_URL$)/.test(name)) delete process.env[name];

const keys = {
  CLERK_SECRET_KEY: process.env['IDP_SECRET_KEY']?.trim(),
  NEXT_PUBLIC_CLERK_PUBLISHABLE_KEY: process.env['IDP_PUBLISHABLE_KEY']?.trim(),
};
for (const [name, value] of Object.entries(keys)) if (value) process.env[name] = value;

// By default, if the service runs on a `vercel.app` host with the keys of a production instance, the SDK sends Frontend API
// requests of browsers to `/__clerk` of that host. Only the local stack serves `/__clerk`.
process.env['CLERK_DISABLE_AUTO_PROXY'] = '1';
process.env['NEXT_PUBLIC_CLERK_TELEMETRY_DISABLED'] = '1';
