/** A call to this service's API. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** JSON text, sent as it stands. */
  readonly body?: string;
}

/** An answer as it came, or undefined where none came within the bound. */
export interface Exchange {
  readonly request: ApiRequest;
  readonly answer: ApiAnswer | undefined;
}

/** Status, headers and body as they came, and how long that took. */
export interface ApiAnswer {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly body: string;
  readonly milliseconds: number;
}

const ANSWER_BOUND_MS = 15_000;
const REFRESH_BOUND_MS = 8_000;

/** The session travels in the cookie that the browser SDK keeps fresh. */
async function send({ method, path, body }: ApiRequest): Promise<ApiAnswer | undefined> {
  const started = performance.now();
  try {
    const response = await fetch(path, {
      method,
      cache: 'no-store',
      signal: AbortSignal.timeout(ANSWER_BOUND_MS),
      ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
    });
    const { status, statusText, headers } = response;
    const text = await response.text();
    return { status, statusText, headers, body: text, milliseconds: Math.round(performance.now() - started) };
  } catch {
    return undefined;
  }
}

/** Waits for a promise, but not for ever; how it ends does not matter here. */
const settled = (promise: Promise<unknown>, milliseconds: number): Promise<unknown> =>
  Promise.race([promise.catch(() => undefined), new Promise((resolve) => setTimeout(resolve, milliseconds))]);

/** The browser SDK's side of the session. */
export interface Session {
  readonly isLoaded: boolean;
  getToken(options?: { skipCache?: boolean }): Promise<string | null>;
}

/**
 * Calls the API as the signed-in user; never throws. A session token that has run out, as in a tab that slept, is
 * renewed first, and a 401 is asked again once with a new token: the user sees a 401 only if the session has ended.
 */
export async function callApi(request: ApiRequest, { isLoaded, getToken }: Session): Promise<Exchange> {
  // The first call does not wait for the SDK: the server has just seen a fresh cookie.
  if (isLoaded) await settled(getToken(), REFRESH_BOUND_MS);
  const answer = await send(request);
  if (answer?.status !== 401) return { request, answer };
  await settled(getToken({ skipCache: true }), REFRESH_BOUND_MS);
  return { request, answer: await send(request) };
}
