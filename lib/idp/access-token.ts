import { verifyToken } from '@clerk/backend';
import * as z from 'zod/mini';
import { isIdentityProviderUserId } from '../api/input';
import { environment } from '../base/env';
import { rateLimitedWarning } from '../base/log';
import { parseJson } from '../http/body';
import { rejectedVerdict, type Verdict } from './verdict';

/** Types in the header of an access token (RFC 9068, 2.1). */
const TYPES = ['at+jwt', 'application/at+jwt'];
const Header = z.object({ typ: z.enum(TYPES) });
const Claims = z.object({
  sub: z.string().check(z.startsWith('user_'), z.refine(isIdentityProviderUserId)),
  client_id: z.string().check(z.minLength(1)),
  scope: z._default(z.string(), ''),
  aud: z.union([z.string(), z.array(z.string())]),
  exp: z.number(),
});
const SdkError = z.object({ reason: z.string() });

const warn = rateLimitedWarning('IDP_OAUTH_AUDIENCE is not set: access tokens are rejected');

/** Decodes the part of a JWT at this index. Does not verify the JWT. */
const decode = (jwt: string, index: 0 | 1): unknown =>
  parseJson(Buffer.from(jwt.split('.')[index] ?? '', 'base64url').toString());

/** Returns true if the header of a JWT says that it is an OAuth access token. Does not verify the JWT. */
export const isAccessToken = (jwt: string): boolean => Header.safeParse(decode(jwt, 0)).success;

/**
 * Verifies an access token. The verdict has only a reason if the token is invalid, belongs to no user or has another audience.
 * Without IDP_OAUTH_AUDIENCE, this applies to every token. Without IDP_JWT_KEY, the SDK gets the public keys from the provider,
 * and caches them.
 */
export async function verifyAccessToken(jwt: string): Promise<Verdict> {
  const { IDP_OAUTH_AUDIENCE: audience, IDP_JWT_KEY: jwtKey, IDP_SECRET_KEY, CLERK_API_URL } = environment();
  if (audience === undefined) {
    warn();
    return { reason: 'access-token' };
  }
  const { data: claims } = Claims.safeParse(decode(jwt, 1));
  if (claims === undefined) return { reason: 'malformed' };
  // The SDK's own check accepts a token without an audience.
  if (![claims.aud].flat().includes(audience)) return { reason: 'audience' };
  const remote = CLERK_API_URL ? { apiUrl: CLERK_API_URL } : {};
  const key = jwtKey ? { jwtKey } : { secretKey: IDP_SECRET_KEY, ...remote };
  try {
    await verifyToken(jwt, { ...key, headerType: TYPES });
  } catch (error) {
    return rejectedVerdict(SdkError.safeParse(error).data?.reason ?? 'unexpected-error');
  }
  const { sub: user, client_id: clientId, scope, exp: expiresAt } = claims;
  const accessToken = { user, clientId, scopes: scope.split(' ').filter(Boolean) };
  return { reason: 'access-token', expiresAt, accessToken };
}
