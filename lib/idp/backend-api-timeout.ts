/**
 * Replaces `fetch` to set a timeout on calls to Clerk's Backend API. Clerk's SDK does not set a timeout. The middleware stops
 * waiting for the SDK after 4 s, but does not cancel the call. The call could then hold its socket for 300 s (the timeout of
 * Node.js). Import this module for its side effect, before any module of the SDK, because the SDK binds `fetch` when the SDK is
 * loaded.
 */
const TIMEOUT_MS = 4_000;

const isBackendApi = (url: string) =>
  url.startsWith(`${process.env['CLERK_API_URL']?.replace(/\/$/, '') || 'https://api.clerk.com'}/`);

const { fetch: send } = globalThis;

globalThis.fetch = (input, init) =>
  typeof input === 'string' && isBackendApi(input)
    ? send(input, { signal: AbortSignal.timeout(TIMEOUT_MS), ...init })
    : send(input, init);
