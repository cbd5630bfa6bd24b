import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type NextFetchEvent, type NextMiddleware, NextRequest, NextResponse } from 'next/server';
import * as z from 'zod/mini';
import { environment } from '../base/env';
import { withTimeout } from '../core/async';
import type { Unchecked, Verdict } from '../core/verdict';
import { type AskProviders, type Credential, otherCredential } from '../http/credential';
import { NO_VERDICT, readVerdict, signVerdict, VERDICT } from '../http/signed-verdict';
import { passedHeader } from '../next/middleware-headers';
import { decode, isAccessToken, verifyAccessToken } from './access-token';
import { extractCredential, type NoCredential } from './credential';
import { NO_REDIRECT, REASON_HEADER, SESSION_HEADERS } from './sdk-formats';
import { clerkEnvironment } from './variables';
import { rejectedVerdict, SIGNED_OUT } from './verdict';

/** Time limit of a verification without IDP_JWT_KEY, for which the SDK gets the public keys from the provider. */
const VERIFY_MS = 4_000;
const MAX_AGE_MS = 60_000;
const MAX_SESSIONS = 5_000;

/** Request headers that pass the auth state to a route: the signed verdict, and the state that the SDK's `auth()` reads. */
type AuthState = ReadonlyArray<readonly [name: string, value: string]>;

/** Returns the response with which the handler of the SDK's middleware passes a verdict on to the route. */
export const passVerdict = (verdict: Verdict): NextResponse =>
  NextResponse.next({ request: { headers: new Headers({ [VERDICT]: signVerdict(verdict) }) } });

/** What a token must have that some key of the provider can have signed. */
const Header = z.object({ alg: z.literal('RS256'), kid: z.string() });
const Claims = z.object({ exp: z.number() });
const CLOCK_SKEW_MS = 5_000;

function isValidWithSomeKey(jwt: string): boolean {
  const { exp = 0 } = Claims.safeParse(decode(jwt, 1)).data ?? {};
  return Header.safeParse(decode(jwt, 0)).success && exp * 1_000 > Date.now() - CLOCK_SKEW_MS;
}

/** Returns the verdict on a credential that could not be checked for lack of keys. Only a token needs them. */
function uncheckedVerdict({ reason }: Unchecked, { value }: Credential): Verdict {
  const tokens = value.match(/(?<=^Bearer |__session[^=]*=)[^;]+/g) ?? [];
  if (!tokens.some(isValidWithSomeKey)) return { reason };
  return { reason, isUnchecked: true, isAccessToken: tokens.some(isAccessToken) || undefined };
}

const signedOut = (verdict: Verdict, credential?: Credential): AuthState => [
  [SESSION_HEADERS[0], 'signed-out'],
  [VERDICT, signVerdict(verdict.isUnchecked && credential ? uncheckedVerdict(verdict, credential) : verdict)],
];

/** Returns true for the state of a request without a credential, or with an invalid one, so that another provider can decide. */
function isUndecided(state: AuthState): boolean {
  const { user, isUnchecked } = readVerdict(new Headers(state.map(([name, value]) => [name, value])));
  return user === undefined && isUnchecked === undefined;
}

/** Returns the auth state of a user, which the SDK's middleware and its handler pass to the route. */
const signedIn = (response: Response): AuthState =>
  [...SESSION_HEADERS, VERDICT].map((name) => [name, passedHeader(response, name) ?? '']);

/**
 * Creates a function that returns the auth state of an API request. It never rejects, and the SDK, which gets only the
 * credential, never responds in place of the route. Caches the state of a verified token, which depends only on the credential,
 * until it expires, for at most 60 s. Rejections are not cached.
 *
 * With other providers, a bearer token that belongs to one of them is decided by it, and cookies are if the SDK rejects its own.
 */
export function authenticator(sdk: NextMiddleware, askProviders?: AskProviders) {
  const verified = new LRUCache<string, AuthState>({
    max: MAX_SESSIONS,
    // Reads the wall clock at each lookup, because timers and the monotonic clock stop while a serverless function is suspended.
    ttlResolution: 0,
    perf: { now: () => Date.now() },
  });
  /** The states of requests without a credential, which differ only in the reason. Each is signed once. */
  const withoutCredential = new Map<NoCredential, AuthState>();

  /** Verifies a credential. Also returns the expiry of a verified token in seconds since 1970. */
  async function verify(
    request: NextRequest,
    credential: Credential,
    event: NextFetchEvent,
  ): Promise<readonly [state: AuthState, expiresAt?: number | undefined]> {
    const { header, value } = credential;
    const token = header === 'authorization' ? value.replace('Bearer ', '') : '';
    if (isAccessToken(token)) {
      const verdict = await verifyAccessToken(token);
      return [signedOut(verdict, credential), verdict.expiresAt];
    }
    const { origin, pathname } = request.nextUrl;
    const headers = Object.fromEntries([NO_REDIRECT, [header, value]]);
    const view = new NextRequest(new URL(pathname, origin), { method: request.method, headers });
    const response = await sdk(view, event);
    if (!response) throw new Error('The SDK supplied no auth state');
    const verdict = readVerdict({ get: (name) => passedHeader(response, name) });
    if (verdict.user !== undefined) return [signedIn(response), verdict.expiresAt];
    // The SDK's own reason is more precise, also if it responded without its handler.
    const isRejected = verdict.reason === SIGNED_OUT.reason || verdict.reason === NO_VERDICT.reason;
    const reason = response.headers.get(REASON_HEADER);
    return [signedOut(isRejected ? rejectedVerdict(reason) : verdict, credential)];
  }

  const keyOf = (credential: Credential) => hash('sha256', JSON.stringify(credential));
  function store(key: string, state: AuthState, expiresAt = 0): AuthState {
    const ttl = Math.min(expiresAt * 1_000 - Date.now(), MAX_AGE_MS);
    if (ttl > 0) verified.set(key, state, { ttl });
    return state;
  }

  async function ofSdk(request: NextRequest, headers: Headers, event: NextFetchEvent): Promise<AuthState> {
    const { IDP_AUTHORIZED_PARTIES = [] } = environment();
    const credential = extractCredential(request.method, headers, IDP_AUTHORIZED_PARTIES);
    if (typeof credential === 'string') {
      const state = withoutCredential.get(credential) ?? signedOut({ reason: credential });
      withoutCredential.set(credential, state);
      return state;
    }
    const key = keyOf(credential);
    const cached = verified.get(key);
    if (cached) return cached;
    try {
      const verifying = verify(request, credential, event);
      const [state, expiresAt] = await (clerkEnvironment().IDP_JWT_KEY
        ? verifying
        : withTimeout(VERIFY_MS, verifying));
      return store(key, state, expiresAt);
    } catch (error) {
      return signedOut(rejectedVerdict(undefined, error), credential);
    }
  }

  if (!askProviders) return ofSdk;
  return async (request: NextRequest, headers: Headers, event: NextFetchEvent): Promise<AuthState> => {
    const { IDP_AUTHORIZED_PARTIES = [] } = environment();
    const credential = otherCredential(request.method, headers, IDP_AUTHORIZED_PARTIES);
    const isBearer = credential?.header === 'authorization';
    const state = isBearer ? undefined : await ofSdk(request, headers, event);
    if (state && (credential === undefined || !isUndecided(state))) return state;
    if (credential) {
      const key = keyOf(credential);
      const cached = verified.get(key);
      if (cached) return cached;
      const verdict = await askProviders(credential, request.nextUrl);
      if (verdict) return store(key, signedOut(verdict), verdict.expiresAt);
    }
    return state ?? ofSdk(request, headers, event);
  };
}
