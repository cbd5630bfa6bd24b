/**
 * Replaces `fetch` to set a timeout on calls to the provider's Backend API. The SDK does not set a timeout, so a call could
 * hold its socket for 300 s, the timeout of Node.js, long after the page that caused the call was served. Import this module
 * for its side effect, before any module of the SDK, because the SDK binds `fetch` when it is loaded.
 */
const TIMEOUT_MS = 4_000;

const isBackendApi = (url: string) =>
  url.startsWith(`${process.env['CLERK_API_URL']?.replace(/\/$/, '') || 'https://api.clerk.com'}/`);

const { fetch: send } = globalThis;

globalThis.fetch = (input, init) =>
  typeof input === 'string' && isBackendApi(input)
    ? send(input, { signal: AbortSignal.timeout(TIMEOUT_MS), ...init })
    : send(input, init);
