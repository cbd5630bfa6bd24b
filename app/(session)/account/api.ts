import type { useSession } from '#lib/clerk/browser';

export interface ApiRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** JSON text. */
  readonly body?: string;
}

export interface ApiResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly body: string;
  /** Time from the request to the end of the body. */
  readonly milliseconds: number;
}

export interface Exchange {
  readonly request: ApiRequest;
  /** Undefined if the request failed or timed out. */
  readonly response: ApiResponse | undefined;
}

const RESPONSE_TIMEOUT_MS = 15_000;
const REFRESH_TIMEOUT_MS = 8_000;

/** Sends a request. The browser adds the session cookie, which the identity provider's browser SDK refreshes. */
async function send({ method, path, body }: ApiRequest): Promise<ApiResponse | undefined> {
  const started = performance.now();
  try {
    const response = await fetch(path, {
      method,
      cache: 'no-store',
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
      ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
    });
    const { status, statusText, headers } = response;
    const text = await response.text();
    return { status, statusText, headers, body: text, milliseconds: Math.round(performance.now() - started) };
  } catch {
    return undefined;
  }
}

/** Resolves when the promise settles, or after the given time. */
const settled = (promise: Promise<unknown>, milliseconds: number): Promise<unknown> =>
  Promise.race([promise.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, milliseconds))]);

type Session = ReturnType<typeof useSession>;

/**
 * Calls the API as the signed-in user. Does not reject. If the browser SDK is loaded, renews an expired session token
 * before the request. After a 401, renews the token and sends the request once more. A second 401 usually means that the
 * session has ended.
 */
export async function callApi(request: ApiRequest, { session }: Session): Promise<Exchange> {
  // While the SDK loads, the request does not wait, because the cookie was valid when the server rendered this page.
  if (session) await settled(session.getToken(), REFRESH_TIMEOUT_MS);
  const response = await send(request);
  if (response?.status !== 401) return { request, response };
  if (session) await settled(session.getToken({ skipCache: true }), REFRESH_TIMEOUT_MS);
  return { request, response: await send(request) };
}
