import { type Credential, expiryOf } from './credential';
import { credentialMemory } from './credential-memory';

/** What the SDK's middleware says of a request, and its `auth()` reads: whose session it is, signed with the secret key. */
export interface AuthState {
  readonly status: string;
  readonly token: string;
  readonly signature: string;
}

/** The status of a request with a verified session; every other one is without. */
export const SIGNED_IN = 'signed-in';
const SIGNED_OUT = 'signed-out';

const headerOf = (part: keyof AuthState) => `x-clerk-auth-${part}`;

function readAuthState(headers: Headers, prefix = ''): AuthState | undefined {
  const part = (name: keyof AuthState) => headers.get(prefix + headerOf(name));
  const status = part('status');
  return status === null
    ? undefined
    : { status, token: part('token') ?? '', signature: part('signature') ?? '' };
}

/** The auth state of a request that the middleware has let pass; undefined where it did not run. */
export const authStateOf = (headers: Headers): AuthState | undefined => readAuthState(headers);

/** The auth state that the SDK's middleware hands on to Next.js; undefined where its answer is another: a redirect, say. */
export const suppliedAuthState = ({ headers }: Response): AuthState | undefined =>
  readAuthState(headers, 'x-middleware-request-');

/** Puts the auth state where `auth()` looks for it. */
export function setAuthState(headers: Headers, { status, token, signature }: AuthState): void {
  headers.set(headerOf('status'), status);
  headers.set(headerOf('token'), token);
  headers.set(headerOf('signature'), signature);
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
        ? { status: SIGNED_OUT, token: '', signature }
        : { status: SIGNED_IN, token: credential.token, signature };
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
