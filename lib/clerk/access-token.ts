import { verifyToken } from '@clerk/backend';
import * as z from 'zod/mini';
import { isIdentityProviderUserId, parseActor, parseJson } from '../core/values';
import type { Verdict } from '../core/verdict';
import { clerkEnvironment, issuer } from './variables';
import { rejectedVerdict } from './verdict';

/** Types in the header of an access token (RFC 9068, 2.1). */
const TYPES = ['at+jwt', 'application/at+jwt'];
const Header = z.object({ typ: z.enum(TYPES) });
/** The service understands no extension of the format that a `crit` header could require (RFC 7515, 4.1.11). */
const WithoutExtensions = z.object({ crit: z.optional(z.undefined()) });
/** The required claims (RFC 9068, 2.2). A resource checks `aud`, so that the log has a reason of its own. */
const Claims = z.object({
  iss: z.string(),
  iat: z.number(),
  jti: z.string().check(z.minLength(1)),
  sub: z.string().check(z.startsWith('user_'), z.refine(isIdentityProviderUserId)),
  client_id: z.string().check(z.minLength(1)),
  scope: z._default(z.string(), ''),
  aud: z.optional(z.union([z.string(), z.array(z.string())])),
  act: z.optional(z.unknown()),
  exp: z.number(),
});
const SdkError = z.object({ reason: z.string() });

/** Decodes the part of a JWT at this index. Does not verify the JWT. */
export const decode = (jwt: string, index: 0 | 1): unknown =>
  parseJson(Buffer.from(jwt.split('.')[index] ?? '', 'base64url').toString());

/** Returns true if the header of a JWT says that it is an OAuth access token. Does not verify the JWT. */
export const isAccessToken = (jwt: string): boolean => Header.safeParse(decode(jwt, 0)).success;

/**
 * Verifies an access token, but not its audience. The verdict has only a reason if the token is invalid or belongs to no user.
 * Without IDP_JWT_KEY, the SDK gets and caches the public keys.
 */
export async function verifyAccessToken(jwt: string): Promise<Verdict> {
  const { IDP_JWT_KEY: jwtKey, IDP_SECRET_KEY, CLERK_API_URL } = clerkEnvironment();
  const { data: claims } = Claims.safeParse(decode(jwt, 1));
  const actor = parseActor(claims?.act);
  if (claims === undefined || actor === null || !WithoutExtensions.safeParse(decode(jwt, 0)).success)
    return { reason: 'malformed' };
  if (claims.iss !== issuer()) return { reason: 'issuer' };
  const remote = CLERK_API_URL ? { apiUrl: CLERK_API_URL } : {};
  const key = jwtKey ? { jwtKey } : { secretKey: IDP_SECRET_KEY, ...remote };
  try {
    await verifyToken(jwt, { ...key, headerType: TYPES });
  } catch (error) {
    return rejectedVerdict(SdkError.safeParse(error).data?.reason ?? 'unexpected-error');
  }
  const { sub: user, client_id: clientId, scope, aud = [], exp: expiresAt } = claims;
  const scopes = scope.split(' ').filter(Boolean);
  const accessToken = { user, clientId, scopes, audiences: [aud].flat(), actor };
  return { reason: 'access-token', expiresAt, accessToken };
}
