import {
  bearer,
  bearerToken,
  type Cookie,
  type Credential,
  cookieHeader,
  parseCookies,
  passesCsrfCheck,
} from '../http/credential';
import { SDK_COOKIE, SESSION_COOKIE } from './sdk-formats';

/** Why a request has no credential. */
export type NoCredential = 'no-credential' | 'malformed' | 'opaque-token' | 'foreign-cookie';

/**
 * A JWT whose parts have no base64 padding (`=`). The SDK would send another token to the provider as an API key, and could take
 * a padded JWT of an OAuth client or a machine for a session token.
 */
const JWT = /^ey[\w-]*\.[\w-]+\.[\w-]+$/;

/** Returns the cookies of a request without session cookies that are not JWTs. */
export const usableCookies = (headers: Headers): Cookie[] =>
  parseCookies(headers).filter(({ name, value }) => !SESSION_COOKIE.test(name) || JWT.test(value));

/** Returns the credential of an API request, or why there is none. A bearer, even a malformed one, precedes cookies. */
export function extractCredential(
  method: string,
  headers: Headers,
  authorizedParties: readonly string[],
): Credential | NoCredential {
  const token = bearerToken(headers);
  if (token !== undefined) {
    if (JWT.test(token)) return bearer(token);
    return token.startsWith('oat_') ? 'opaque-token' : 'malformed';
  }
  const cookies = usableCookies(headers).filter(({ name }) => SDK_COOKIE.test(name));
  if (!cookies.some(({ name }) => SESSION_COOKIE.test(name))) return 'no-credential';
  if (!passesCsrfCheck(method, headers, authorizedParties)) return 'foreign-cookie';
  return { header: 'cookie', value: cookieHeader(cookies) };
}
