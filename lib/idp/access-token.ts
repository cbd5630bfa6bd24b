import { verifyToken } from '@clerk/backend';
import * as z from 'zod/mini';
import { isIdentityProviderUserId } from '../api/input';
import { environment } from '../env';
import { parseJson } from '../http/body';
import { rateLimitedWarning } from '../log';
import type { AccessToken } from './verdict';

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

/** Returns true if the header of a JWT says that it is an OAuth access token. Does not verify the JWT. */
export function isAccessToken(jwt: string): boolean {
  const [header = ''] = jwt.split('.', 1);
  return Header.safeParse(parseJson(Buffer.from(header, 'base64url').toString())).success;
}

/**
 * Verifies an access token. Returns a reason if it is invalid, belongs to no user or has another audience, and for every token
 * without IDP_OAUTH_AUDIENCE. Without IDP_JWT_KEY, the SDK gets the public keys from the provider, and caches them.
 */
export async function verifyAccessToken(jwt: string): Promise<AccessToken | string> {
  const { IDP_OAUTH_AUDIENCE: audience, IDP_JWT_KEY: jwtKey, IDP_SECRET_KEY, CLERK_API_URL } = environment();
  if (audience === undefined) {
    warn();
    return 'access-token';
  }
  const remote = CLERK_API_URL ? { apiUrl: CLERK_API_URL } : {};
  const key = jwtKey ? { jwtKey } : { secretKey: IDP_SECRET_KEY, ...remote };
  try {
    const { data } = Claims.safeParse(await verifyToken(jwt, { ...key, headerType: TYPES }));
    if (data === undefined) return 'malformed';
    // The SDK's own check accepts a token without an audience.
    if (![data.aud].flat().includes(audience)) return 'audience';
    const { sub, client_id, scope, exp } = data;
    return { user: sub, clientId: client_id, scopes: scope.split(' ').filter(Boolean), expiresAt: exp };
  } catch (error) {
    return SdkError.safeParse(error).data?.reason ?? 'unexpected-error';
  }
}
