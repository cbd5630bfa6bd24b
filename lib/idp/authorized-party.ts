import { NextResponse } from 'next/server';

/**
 * Returns true if `azp`, the origin for which a verified token was issued, is not in IDP_AUTHORIZED_PARTIES. Returns false if
 * that variable is not set or if the token has no `azp`. Pages accept a token without `azp`, but the API does not
 * (docs/decisions/0013-authorized-parties-on-pages.md).
 */
export const namesForeignParty = (azp: unknown, authorizedParties: readonly string[] | undefined): boolean =>
  authorizedParties !== undefined && azp !== undefined && !authorizedParties.some((party) => party === azp);

/**
 * Response header that reports a token of a foreign party, which is an origin that is not in IDP_AUTHORIZED_PARTIES. Only the
 * page handler in middleware.ts sets this header. lib/idp/authentication-middleware.ts discards such a response and runs
 * Clerk's SDK again, without the session cookies. The client receives only the second response.
 */
const FOREIGN_PARTY = 'x-foreign-party';

/** Returns a response that reports a token of a foreign party. */
export const foreignParty = (): NextResponse => NextResponse.next({ headers: { [FOREIGN_PARTY]: '1' } });

export const isForeignParty = ({ headers }: Response): boolean => headers.has(FOREIGN_PARTY);
