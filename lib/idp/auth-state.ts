import { NextResponse } from 'next/server';
import { UNAUTHENTICATED_REASONS, type UnauthenticatedReason } from '../errors/unauthenticated-reason';
import { credentialMemory } from './credential-memory';
import { type Credential, expiryOf } from './extract-credential';
import { reasonOfSdk } from './sdk-reasons';

/** What the SDK's middleware says of a request, and its `auth()` reads: whose session it is, signed with the secret key. */
export interface AuthState {
  readonly status: string;
  readonly token: string;
  readonly signature: string;
  /** Why there is no verified session; undefined where there is one. */
  readonly reason: UnauthenticatedReason | undefined;
}

/** The status of a request with a verified session; every other one is without. */
export const SIGNED_IN = 'signed-in';
const SIGNED_OUT = 'signed-out';

const headerOf = (part: keyof AuthState) => `x-clerk-auth-${part}`;

function readAuthState(
  headers: Headers,
  prefix: string,
  reasonOf: (word: string) => UnauthenticatedReason,
): AuthState | undefined {
  const part = (name: keyof AuthState) => headers.get(prefix + headerOf(name)) ?? '';
  const status = part('status');
  if (status === '') return undefined;
  // The SDK tells the reason in its answer, not to the route.
  const reason = status === SIGNED_IN ? undefined : reasonOf(headers.get(headerOf('reason')) ?? '');
  return { status, token: part('token'), signature: part('signature'), reason };
}

const reasonAsSet = (word: string): UnauthenticatedReason =>
  UNAUTHENTICATED_REASONS.find((reason) => reason === word) ?? 'not-verified';

/** The auth state of a request that the middleware has let pass; undefined where it did not run. */
export const authStateOf = (headers: Headers): AuthState | undefined =>
  readAuthState(headers, '', reasonAsSet);

/** The auth state that the SDK's middleware hands on to Next.js; undefined where its answer is another: a redirect, say. */
export const readSdkAuthState = ({ headers }: Response): AuthState | undefined =>
  readAuthState(headers, 'x-middleware-request-', reasonOfSdk);

/** In the SDK's answer to us alone: it never leaves. */
const SESSION_USER = 'x-session-user';

/** Lets a request pass, and tells whose session it is, for `suppliedSessionUser` to read. */
export function passWithSessionUser(user: string | undefined): NextResponse {
  const answer = NextResponse.next();
  if (user !== undefined) answer.headers.set(SESSION_USER, encodeURIComponent(user));
  return answer;
}

/** Whose session the SDK's middleware found; undefined where it found none, or did not tell. */
export function suppliedSessionUser({ headers }: Response): string | undefined {
  const user = headers.get(SESSION_USER);
  return user === null ? undefined : decodeURIComponent(user);
}

/** A word of the SDK's own, and nothing of a caller's. */
const PLAIN_WORD = /^[a-z-]{1,100}$/;

/** What the SDK itself says of why there is no session, for a warning. */
export function sdkReasonOf({ headers }: Response): string | undefined {
  const word = headers.get(headerOf('reason')) ?? '';
  return PLAIN_WORD.test(word) ? word : undefined;
}

/** Puts the auth state where `auth()` looks for it, and the reason where the guard does. */
export function setAuthState(headers: Headers, state: AuthState): void {
  for (const part of ['status', 'token', 'signature'] as const) headers.set(headerOf(part), state[part]);
  if (state.reason) headers.set(headerOf('reason'), state.reason);
}

/** What the SDK supplied for a credential before. Why that may be remembered stands in credential-memory.ts. */
export interface AuthStateMemory {
  recall(credential: Credential): AuthState | undefined;
  /** Remembers a state if the SDK accepted the credential, or if there was none. */
  remember(credential: Credential, state: AuthState): void;
}

/** A memory with nothing in it. */
export function authStateMemory(): AuthStateMemory {
  // Of an accepted token, the SDK's signature: the rest is in the request.
  const signatures = credentialMemory();
  // It hangs on the secret key alone, which is the same for as long as the process lives.
  let ofNobody: AuthState | undefined;
  return {
    recall(credential) {
      if (credential === undefined) return ofNobody;
      const { header, value, token } = credential;
      if (token === undefined) return undefined;
      const signature = signatures.recall([header, value]);
      return signature === undefined ? undefined : { status: SIGNED_IN, token, signature, reason: undefined };
    },
    remember(credential, state) {
      const { status, token, signature } = state;
      if (credential === undefined) {
        if (status === SIGNED_OUT) ofNobody = state;
      } else if (status === SIGNED_IN && token === credential.token) {
        signatures.keep([credential.header, credential.value], signature, expiryOf(token));
      }
    },
  };
}
