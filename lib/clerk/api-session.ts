import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type NextFetchEvent, type NextMiddleware, NextRequest, NextResponse } from 'next/server';
import * as z from 'zod/mini';
import { environment } from '../base/env';
import { withTimeout } from '../core/async';
import type { Verdict } from '../core/verdict';
import { type AskProviders, type Credential, otherCredential } from '../http/credential';
import { type AuthState, NO_VERDICT, readVerdict, signVerdict, VERDICT } from '../http/signed-verdict';
import { passedHeader } from '../next/middleware-headers';
import { decode, isAccessToken, verifyAccessToken } from './access-token';
import { extractCredential, NO_REDIRECT, REASON_HEADER, SESSION_HEADERS } from './sdk-formats';
import { clerkEnvironment } from './variables';
import { rejectedVerdict, SIGNED_OUT } from './verdict';

/** Time limit of a verification without IDP_JWT_KEY, for which the SDK gets the public keys from the provider. */
const VERIFY_MS = 4_000;
const MAX_AGE_MS = 60_000;
const MAX_SESSIONS = 5_000;

interface Decision {
  readonly verdict: Verdict;
  readonly state: AuthState;
}

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
function uncheckedVerdict(reason: string, { value }: Credential): Verdict {
  const tokens = value.match(/(?<=^Bearer |__session[^=]*=)[^;]+/g) ?? [];
  if (!tokens.some(isValidWithSomeKey)) return { reason };
  return { reason, isUnchecked: true, isAccessToken: tokens.some(isAccessToken) || undefined };
}

const signedOut = (given: Verdict, credential?: Credential): Decision => {
  const verdict = given.isUnchecked && credential ? uncheckedVerdict(given.reason, credential) : given;
  return {
    verdict,
    state: [
      [SESSION_HEADERS[0], 'signed-out'],
      [VERDICT, signVerdict(verdict)],
    ],
  };
};

/**
 * Creates a function that returns the auth state of an API request. It never rejects, and the SDK, which gets only the
 * credential, never responds in place of the route. Caches the state of a verified token, which depends only on the credential,
 * until it expires, for at most 60 s. Rejections are not cached.
 *
 * With other providers, a bearer token that belongs to one of them is decided by it, and cookies are if the SDK rejects its own.
 */
export function authenticator(sdk: NextMiddleware, askProviders?: AskProviders) {
  const verified = new LRUCache<string, Decision>({
    max: MAX_SESSIONS,
    // Reads the wall clock at each lookup, because timers and the monotonic clock stop while a serverless function is suspended.
    ttlResolution: 0,
    perf: { now: () => Date.now() },
  });

  async function verify(
    request: NextRequest,
    credential: Credential,
    event: NextFetchEvent,
  ): Promise<Decision> {
    const { header, value } = credential;
    const token = header === 'authorization' ? value.replace('Bearer ', '') : '';
    if (isAccessToken(token)) return signedOut(await verifyAccessToken(token), credential);
    const { origin, pathname } = request.nextUrl;
    const headers = Object.fromEntries([NO_REDIRECT, [header, value]]);
    const view = new NextRequest(new URL(pathname, origin), { method: request.method, headers });
    const response = await sdk(view, event);
    if (!response) throw new Error('The SDK supplied no auth state');
    const passed = (name: string) => passedHeader(response, name);
    const verdict = readVerdict({ get: passed });
    if (verdict.user !== undefined)
      return { verdict, state: [...SESSION_HEADERS, VERDICT].map((name) => [name, passed(name) ?? '']) };
    // The SDK's own reason is more precise, also if it responded without its handler.
    const isRejected = verdict.reason === SIGNED_OUT.reason || verdict.reason === NO_VERDICT.reason;
    const reason = response.headers.get(REASON_HEADER);
    return signedOut(isRejected ? rejectedVerdict(reason) : verdict, credential);
  }

  /** Returns the cached decision on a credential, or the one of `decide`, which it caches if it expires. */
  async function cached<D extends Decision | undefined>(
    credential: Credential,
    decide: () => Promise<D>,
  ): Promise<Decision | D> {
    const key = hash('sha256', JSON.stringify(credential));
    const known = verified.get(key);
    if (known) return known;
    const decision = await decide();
    const ttl = Math.min((decision?.verdict.expiresAt ?? 0) * 1_000 - Date.now(), MAX_AGE_MS);
    if (decision && ttl > 0) verified.set(key, decision, { ttl });
    return decision;
  }

  async function decideBySdk(request: NextRequest, headers: Headers, event: NextFetchEvent) {
    const { IDP_AUTHORIZED_PARTIES = [] } = environment();
    const credential = extractCredential(request.method, headers, IDP_AUTHORIZED_PARTIES);
    if (typeof credential === 'string') return signedOut({ reason: credential });
    return cached(credential, () => {
      const verifying = verify(request, credential, event);
      return (clerkEnvironment().IDP_JWT_KEY ? verifying : withTimeout(VERIFY_MS, verifying)).catch(
        (error: unknown) => signedOut(rejectedVerdict(undefined, error), credential),
      );
    });
  }

  async function decide(request: NextRequest, headers: Headers, event: NextFetchEvent): Promise<Decision> {
    if (!askProviders) return decideBySdk(request, headers, event);
    const { IDP_AUTHORIZED_PARTIES = [] } = environment();
    const credential = otherCredential(request.method, headers, IDP_AUTHORIZED_PARTIES);
    const isBearer = credential?.header === 'authorization';
    const ofSdk = isBearer ? undefined : await decideBySdk(request, headers, event);
    const isDecided = ofSdk && (ofSdk.verdict.user !== undefined || ofSdk.verdict.isUnchecked);
    if (credential === undefined || isDecided) return ofSdk ?? decideBySdk(request, headers, event);
    const ofOther = await cached(credential, async () => {
      const verdict = await askProviders(credential, request.nextUrl);
      return verdict && signedOut(verdict);
    });
    return ofOther ?? ofSdk ?? decideBySdk(request, headers, event);
  }

  return async (...args: Parameters<typeof decide>): Promise<AuthState> => (await decide(...args)).state;
}
