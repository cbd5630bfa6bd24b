import { type Credential, expiryOf } from './credential';
import { credentialMemory } from './credential-memory';

/** What the SDK's middleware says of a request, and its `auth()` reads: whose session it is, signed with the secret key. */
export interface AuthState {
  readonly status: string;
  readonly token: string;
  readonly signature: string;
  /** Why there is no verified session, in the SDK's words or ours: for the log, never for the caller. */
  readonly reason: string;
}

/** The status of a request with a verified session; every other one is without. */
export const SIGNED_IN = 'signed-in';
const SIGNED_OUT = 'signed-out';
const NO_CREDENTIAL = 'no-credential';

const headerOf = (part: keyof AuthState) => `x-clerk-auth-${part}`;
/** One of the SDK's own words, and none of a caller's. */
const REASON = /^[a-z-]{1,50}$/;

function readAuthState(headers: Headers, prefix = ''): AuthState | undefined {
  const part = (name: keyof AuthState) => headers.get(prefix + headerOf(name)) ?? '';
  const status = part('status');
  // The SDK tells the reason in its answer, not to the route.
  const reason = headers.get(headerOf('reason')) ?? '';
  return status === ''
    ? undefined
    : {
        status,
        token: part('token'),
        signature: part('signature'),
        reason: REASON.test(reason) ? reason : '',
      };
}

/** The auth state of a request that the middleware has let pass; undefined where it did not run. */
export const authStateOf = (headers: Headers): AuthState | undefined => readAuthState(headers);

/** The auth state that the SDK's middleware hands on to Next.js; undefined where its answer is another: a redirect, say. */
export const suppliedAuthState = ({ headers }: Response): AuthState | undefined =>
  readAuthState(headers, 'x-middleware-request-');

/** Puts the auth state where `auth()` looks for it, and the reason where the guard does. */
export function setAuthState(headers: Headers, state: AuthState): void {
  for (const part of ['status', 'token', 'signature'] as const) headers.set(headerOf(part), state[part]);
  if (state.reason !== '') headers.set(headerOf('reason'), state.reason);
}

/** What the SDK supplied for a credential before. Why that may be remembered stands in credential-memory.ts. */
export interface AuthStateMemory {
  recall(credential: Credential): AuthState | undefined;
  /** Remembers a state if the SDK accepted the credential, or if there was none. */
  remember(credential: Credential, state: AuthState): void;
}

/** A memory with nothing in it. */
export function authStateMemory(): AuthStateMemory {
  // Of an accepted token the SDK's signature, of no credential the empty one: the rest is in the request.
  const signatures = credentialMemory();
  const keyOf = (credential: Credential) => (credential ? [credential.header, credential.value] : []);
  return {
    recall(credential) {
      const signature = signatures.recall(keyOf(credential));
      if (signature === undefined) return undefined;
      return credential?.token === undefined
        ? { status: SIGNED_OUT, token: '', signature, reason: NO_CREDENTIAL }
        : { status: SIGNED_IN, token: credential.token, signature, reason: '' };
    },
    remember(credential, { status, token, signature }) {
      if (credential === undefined && status === SIGNED_OUT) {
        signatures.keep(keyOf(credential), signature, Number.POSITIVE_INFINITY);
      } else if (status === SIGNED_IN && token === credential?.token) {
        signatures.keep(keyOf(credential), signature, expiryOf(token));
      }
    },
  };
}
