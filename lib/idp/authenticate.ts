import { type NextFetchEvent, type NextMiddleware, type NextRequest, NextResponse } from 'next/server';
import { withTimeout } from '../concurrency/with-timeout';
import { describeError } from '../errors/describe-error';
import { type AuthState, readSdkAuthState, SIGNED_IN, sdkReasonOf } from './auth-state';
import type { Credential } from './extract-credential';
import { sanitizeApiRequest } from './sanitize-request';
import { sessionCache } from './session-cache';

/**
 * Time limit of the middleware of Clerk's SDK. The SDK calls the identity provider in two cases: to exchange the nonce of a
 * handshake (a redirect that renews a session) for cookies, and to get the public keys if IDP_JWT_KEY is not set.
 */
export const SDK_TIMEOUT_MS = 4_000;

/** If the timer of a time limit is this late, the process stood still, for example because the machine was suspended. */
const STANDSTILL_MS = 1_000;

/**
 * Runs the SDK's middleware. Rejects if the middleware fails or exceeds the time limit. If the process stood still in the
 * meantime, the time limit starts again. Without a new limit, a valid session would get a 401 because of the standstill.
 */
export async function runSdk(
  sdk: NextMiddleware,
  request: NextRequest,
  event: NextFetchEvent,
  milliseconds = SDK_TIMEOUT_MS,
): Promise<Response> {
  const startedAt = performance.now();
  const response = Promise.resolve(sdk(request, event));
  const limited = withTimeout(milliseconds, response).catch((error: unknown) => {
    if (performance.now() - startedAt < milliseconds + STANDSTILL_MS) throw error;
    return withTimeout(milliseconds, response);
  });
  return (await limited) ?? NextResponse.next();
}

/**
 * Authenticates an API request with this credential. Returns the auth state, which is the result of the SDK's session check.
 */
export type Authenticate = (
  request: NextRequest,
  event: NextFetchEvent,
  credential: Credential,
) => Promise<AuthState>;

/**
 * Creates the function that authenticates API requests with the SDK's middleware. The function caches verified sessions.
 *
 * All requests without a credential have the same auth state, the signed-out state. The function gets the signed-out state from
 * the SDK once and reuses it. If the SDK fails to process a credential, the function returns the signed-out state with the
 * reason `not-verified`. The function rejects if the SDK cannot supply the signed-out state.
 */
export function authenticator(sdk: NextMiddleware, warn: (fields: object) => void): Authenticate {
  const sessions = sessionCache();
  let signedOut: AuthState | undefined;

  async function runSdkForState(request: NextRequest, event: NextFetchEvent, credential: Credential) {
    const response = await runSdk(sdk, sanitizeApiRequest(request, credential), event);
    const state = readSdkAuthState(response);
    if (state === undefined) throw new Error('The SDK supplied no auth state');
    if (credential !== undefined && state.reason === 'not-verified') warn({ reason: sdkReasonOf(response) });
    return state;
  }

  async function signedOutState(request: NextRequest, event: NextFetchEvent): Promise<AuthState> {
    signedOut ??= { ...(await runSdkForState(request, event, undefined)), reason: 'no-credential' };
    return signedOut;
  }

  return async (request, event, credential) => {
    if (credential === undefined) return signedOutState(request, event);
    const cached = sessions.get(credential);
    if (cached && credential.token !== undefined) {
      return { status: SIGNED_IN, token: credential.token, ...cached, reason: undefined };
    }
    try {
      const state = await runSdkForState(request, event, credential);
      const { user, signature, token } = state;
      if (user !== undefined && token === credential.token) sessions.set(credential, { signature, user });
      return state;
    } catch (error) {
      warn({ error: describeError(error) });
      return { ...(await signedOutState(request, event)), reason: 'not-verified' };
    }
  };
}
