import { createPublicKey } from 'node:crypto';
import { compactVerify } from 'jose';
import { type NextFetchEvent, type NextMiddleware, NextRequest, NextResponse } from 'next/server';
import * as z from 'zod/mini';
import { describeError } from '../base/errors';
import { rateLimitedWarning } from '../base/log';
import { parseJson } from '../core/values';
import { cookieHeader, parseCookies } from '../http/credential';
import { HANDSHAKE, JWT, NO_REDIRECT, NONCE, PARAMETER_PREFIX, TOKEN_CATEGORIES } from './sdk-formats';
import { clerkEnvironment } from './variables';

/** Few requests need the client, so they load it. */
const backendApi = () => import('./backend-api');

export const warn = rateLimitedWarning('session of a page not verified');

/** With this nonce or token, the provider redirects the browser back to a page to renew the session. */
interface Handshake {
  readonly name: string;
  readonly value: string;
  readonly isInAddress: boolean;
}

const Header = z.object({
  typ: z.literal('JWT'),
  kid: z.string(),
  cat: z.optional(z.enum(TOKEN_CATEGORIES)),
});
const Payload = z.object({ handshake: z.array(z.string()).check(z.minLength(1)) });

/** Returns the handshake of a page request. Ignores a token that is not a JWT. */
export function findHandshake({ nextUrl, cookies }: NextRequest): Handshake | undefined {
  for (const name of [NONCE, HANDSHAKE]) {
    const parameter = nextUrl.searchParams.get(name);
    const value = parameter || cookies.get(name)?.value;
    if (value && (name === NONCE || JWT.test(value)))
      return { name, value, isInAddress: value === parameter };
  }
  return undefined;
}

/** Returns the address of a page without the parameters of the SDK. */
export function withoutParameters(address: URL): URL {
  const url = new URL(address);
  for (const name of [...url.searchParams.keys()])
    if (name.startsWith(PARAMETER_PREFIX)) url.searchParams.delete(name);
  return url;
}

/** Returns the cookies in a token. Rejects without cookies, and if the provider did not sign it for a handshake. */
async function verifyToken(token: string): Promise<string[]> {
  const { IDP_JWT_KEY } = clerkEnvironment();
  const findKey = IDP_JWT_KEY ? () => createPublicKey(IDP_JWT_KEY) : (await backendApi()).findKey;
  const { payload, protectedHeader } = await compactVerify(token, findKey);
  Header.parse(protectedHeader);
  return Payload.parse(parseJson(new TextDecoder().decode(payload))).handshake;
}

/**
 * Sets the cookies that the provider supplies for a handshake. Then verifies the new session with the SDK or, if the handshake is
 * in the address, redirects the browser to the address without it. Rejects without cookies for a nonce. An invalid token leaves
 * the session that the browser has.
 */
export async function completeHandshake(
  sdk: NextMiddleware,
  request: NextRequest,
  event: NextFetchEvent,
  { name, value, isInAddress }: Handshake,
): Promise<Response | undefined> {
  const supplied = name === NONCE ? (await backendApi()).exchangeNonce(value) : verifyToken(value);
  const cookies = await supplied.catch((error: unknown) => {
    if (name === NONCE) throw error;
    // Any subdomain can set the cookie with the token.
    warn({ error: describeError(error) });
    return [];
  });
  const headers = new Headers(request.headers);
  const isReplaced = (own: string) => cookies.some((cookie) => cookie.startsWith(`${own}=`));
  const kept = parseCookies(headers).filter((cookie) => !isReplaced(cookie.name));
  headers.set('cookie', [cookieHeader(kept), ...cookies.map((cookie) => cookie.split(';', 1))].join('; '));
  // A second handshake could redirect the browser forever.
  headers.set(...NO_REDIRECT);
  // `nextUrl` has the host `localhost` for a loopback address, so Next.js would not make the redirect relative.
  const url = withoutParameters(new URL(request.url));
  const response =
    isInAddress && cookies.length > 0
      ? NextResponse.redirect(url, { headers: { 'cache-control': 'no-store' } })
      : await sdk(new NextRequest(url, { headers, method: request.method }), event);
  for (const cookie of cookies) response?.headers.append('set-cookie', cookie);
  return response ?? undefined;
}
