import { NextResponse } from 'next/server';

/**
 * Returns true if a verified token names an origin that is not an authorized party. A token from a handshake may name no
 * origin (`azp`). Pages accept such a token, the API does not (docs/decisions/0013-authorized-parties-on-pages.md).
 */
export const namesForeignParty = (azp: unknown, authorizedParties: readonly string[] | undefined): boolean =>
  authorizedParties !== undefined && azp !== undefined && !authorizedParties.some((party) => party === azp);

/** Marks the response of the SDK's middleware to a token of a foreign party. That response is never sent to a client. */
const FOREIGN_PARTY = 'x-foreign-party';

/** Returns a response that reports a token of a foreign party to `isForeignParty`. */
export const foreignParty = (): NextResponse => NextResponse.next({ headers: { [FOREIGN_PARTY]: '1' } });

export const isForeignParty = ({ headers }: Response): boolean => headers.has(FOREIGN_PARTY);
