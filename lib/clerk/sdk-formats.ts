import { fieldsOf, isIdentityProviderUserId } from '../core/values';
import type { ActiveOrganization } from '../core/verdict';
import {
  bearer,
  bearerToken,
  type Cookie,
  type Credential,
  cookieHeader,
  parseCookies,
  passesCsrfCheck,
} from '../http/credential';

/*
 * What the provider's SDK does not document, and its middleware and `auth()` agree on: names of cookies, parameters and headers,
 * and reasons. tests/unit/frameworks.test.ts compares them with the installed SDK.
 */

/** Request headers from which `auth()` reads the session, if the signature is right. */
export const SESSION_HEADERS = [
  'x-clerk-auth-status',
  'x-clerk-auth-token',
  'x-clerk-auth-signature',
] as const;
/** Response header with the reason of a rejection. */
export const REASON_HEADER = 'x-clerk-auth-reason';
/** Response headers that would show the client the reason of the SDK and the address of the page. */
export const REPORT_HEADERS = ['x-clerk-auth-status', REASON_HEADER, 'x-clerk-auth-message'] as const;

/** Reasons of the SDK that do not concern the credential: it could not get the public keys. */
export const WITHOUT_KEYS = /^(?:jwk-(?!kid-mismatch)|secret-key-invalid|unexpected-error)/;

export const SESSION_COOKIE = /^__session(?:_|$)/;
/** Cookies from which the SDK reads the session. A suffix of the name may identify an instance of the provider. */
export const SDK_COOKIE = /^__(?:session|client_uat|clerk_db_jwt)(?:_|$)/;
/** Cookies that renew a session. For them, the SDK would call the provider or print text of the client. */
export const RENEWAL_COOKIE = /^__(?:refresh|clerk_handshake)/;

/** Cookie and parameter with a token that contains the cookies of a session. */
export const HANDSHAKE = '__clerk_handshake';
/** Cookie and parameter for which the provider supplies the cookies of a session. */
export const NONCE = '__clerk_handshake_nonce';
/** Categories (`cat`) in the header of tokens that belong neither to machines nor to JWT templates. */
export const TOKEN_CATEGORIES = ['cl_B7d4PD111AAA', 'cl_I7d4PD111III'];
/** Parameter that redirects the browser to another address. */
export const REDIRECT_PARAMETER = '__clerk_redirect_url';
/** Start of the names of all parameters of the SDK. */
export const PARAMETER_PREFIX = '__clerk_';

/** With this header, the SDK does not redirect the browser to the provider. */
export const NO_REDIRECT = ['sec-fetch-dest', 'empty'] as const;

/**
 * Returns the active organization that the SDK read from the claims of a session token, or undefined if the id or the role is
 * malformed. The SDK does not check the types of the claims, and turns a role of any type into a text.
 */
export function parseOrganization(session: {
  readonly orgId?: unknown;
  readonly orgRole?: unknown;
  readonly sessionClaims?: object | null;
}): ActiveOrganization | undefined {
  const { orgId: id, orgRole: role, sessionClaims } = session;
  // A token of version 2 has the claim `o`.
  const { o, org_role } = fieldsOf(sessionClaims);
  const claim = o === undefined ? org_role : fieldsOf(o)['rol'];
  if (!isIdentityProviderUserId(id) || typeof role !== 'string') return undefined;
  return typeof claim === 'string' && claim !== '' ? { id, role } : undefined;
}

/** Why a request has no credential. */
export type NoCredential = 'no-credential' | 'malformed' | 'opaque-token' | 'foreign-cookie';

/**
 * A JWT whose parts have no base64 padding (`=`). The SDK would send another token to the provider as an API key, and could take
 * a padded JWT of an OAuth client or a machine for a session token.
 */
export const JWT = /^ey[\w-]*\.[\w-]+\.[\w-]+$/;

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
