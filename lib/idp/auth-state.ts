import { createHmac, timingSafeEqual } from 'node:crypto';
import { NextResponse } from 'next/server';
import { environment } from '../env';
import { UNAUTHENTICATED_REASONS, type UnauthenticatedReason } from '../errors/unauthenticated-reason';
import { timesOf } from './extract-credential';
import { reasonOfSdk } from './sdk-reasons';
import type { Verdict } from './session-user';

/**
 * The auth state: the result of the session check of an API request in Clerk's SDK. The middleware passes the auth state to the
 * route in request headers. The SDK's `auth()` reads `status`, `token` and `signature`. lib/guard.ts reads `user` or `reason`.
 */
export interface AuthState {
  readonly status: string;
  readonly token: string;
  readonly signature: string;
  /** The identity-provider user id of the verified session. Undefined if `reason` is set. */
  readonly user: string | undefined;
  /** The reason why the request has no user. Undefined if `user` is set. */
  readonly reason: UnauthenticatedReason | undefined;
}

/** The SDK's status of a request with a verified token. */
export const SIGNED_IN = 'signed-in';

const SDK_PARTS = ['status', 'token', 'signature'] as const;
const sdkHeader = (part: (typeof SDK_PARTS)[number]) => `x-clerk-auth-${part}`;
/** Response header in which the SDK's middleware reports why it rejected a credential. */
const SDK_REASON = 'x-clerk-auth-reason';
const REASON = 'x-identity-link-reason';
const USER = 'x-identity-link-user';
/** Header that proves that the middleware of this service, and not the client, set the user. */
const PROOF = 'x-identity-link-proof';
/** If the middleware sets a response header with this prefix, Next.js turns it into a request header of the route. */
const REQUEST_PREFIX = 'x-middleware-request-';

const knownReason = (word: string | null): UnauthenticatedReason | undefined =>
  UNAUTHENTICATED_REASONS.find((reason) => reason === word);

/**
 * Creates a response for the callback that middleware.ts passes to the SDK's middleware. The response lets the request continue
 * and contains the verdict: the user, or the reason why there is no user. `readSdkAuthState` reads the verdict.
 */
export function nextWithVerdict(verdict: Verdict): NextResponse {
  const response = NextResponse.next();
  if (verdict.user === undefined) response.headers.set(REQUEST_PREFIX + REASON, verdict.reason);
  else response.headers.set(REQUEST_PREFIX + USER, encodeURIComponent(verdict.user));
  return response;
}

/** Returns the auth state that the SDK's middleware supplies, or undefined if it supplies none, for example in a redirect. */
export function readSdkAuthState({ headers }: Response): AuthState | undefined {
  const part = (name: (typeof SDK_PARTS)[number]) => headers.get(REQUEST_PREFIX + sdkHeader(name)) ?? '';
  const [status, token, signature] = [part('status'), part('token'), part('signature')];
  if (status === '') return undefined;
  const user = headers.get(REQUEST_PREFIX + USER);
  if (status === SIGNED_IN && user !== null)
    return { status, token, signature, user: decodeURIComponent(user), reason: undefined };
  // If the SDK rejected the token, the reason of the SDK is in a separate header.
  const reason =
    status === SIGNED_IN
      ? (knownReason(headers.get(REQUEST_PREFIX + REASON)) ?? 'not-verified')
      : reasonOfSdk(headers.get(SDK_REASON) ?? '');
  return { status, token, signature, user: undefined, reason };
}

/** Format of the SDK's reasons. Other text is not logged, because it might contain a part of a client's request. */
const PLAIN_WORD = /^[a-z-]{1,100}$/;

/** Returns the SDK's reason for a rejection, so that a warning can log it. */
export function sdkReasonOf({ headers }: Response): string | undefined {
  const word = headers.get(SDK_REASON) ?? '';
  return PLAIN_WORD.test(word) ? word : undefined;
}

/** Returns the HMAC of the encoded user and the token. */
const proofOf = (encodedUser: string, token: string): Buffer =>
  createHmac('sha256', environment().IDP_SECRET_KEY)
    .update(JSON.stringify([encodedUser, token]))
    .digest();

/** Adds the auth state to the headers that the route receives. */
export function writeAuthState(headers: Headers, { user, reason, ...sdk }: AuthState): void {
  for (const part of SDK_PARTS) headers.set(sdkHeader(part), sdk[part]);
  if (reason !== undefined) headers.set(REASON, reason);
  if (user === undefined) return;
  const encodedUser = encodeURIComponent(user);
  headers.set(USER, encodedUser);
  headers.set(PROOF, proofOf(encodedUser, sdk.token).toString('base64'));
}

/**
 * Returns the user of the verified session of a request, or the reason why there is no such user. Ignores the user header if the
 * proof header is absent or invalid, because a client can set the user header on a path that the middleware does not handle.
 */
export function readVerdict(headers: Pick<Headers, 'get' | 'has'>): Verdict {
  const encodedUser = headers.get(USER);
  if (encodedUser === null) {
    const reason = headers.has(sdkHeader('status')) ? knownReason(headers.get(REASON)) : undefined;
    return { user: undefined, reason: reason ?? 'no-auth-state' };
  }
  const proof = Buffer.from(headers.get(PROOF) ?? '', 'base64');
  const token = headers.get(sdkHeader('token')) ?? '';
  const expected = proofOf(encodedUser, token);
  if (proof.length !== expected.length || !timingSafeEqual(proof, expected))
    return { user: undefined, reason: 'no-auth-state' };
  return { user: decodeURIComponent(encodedUser), issuedAt: () => timesOf(token).iat };
}
