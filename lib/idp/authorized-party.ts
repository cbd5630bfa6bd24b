import { NextResponse } from 'next/server';

/**
 * Returns true if a verified token names an origin that is not an authorized party. A token from a handshake may name
 * none: pages accept that, the API does not (docs/decisions/0013-authorized-parties-on-pages.md).
 */
export const namesForeignParty = (azp: unknown, authorizedParties: readonly string[] | undefined): boolean =>
  authorizedParties !== undefined && azp !== undefined && !authorizedParties.some((party) => party === azp);

/** Set on the response of the SDK's middleware. The response itself is never sent. */
const FOREIGN_PARTY = 'x-foreign-party';

/** Reports a token of a foreign party, for `isForeignParty` to read. */
export const foreignParty = (): NextResponse => NextResponse.next({ headers: { [FOREIGN_PARTY]: '1' } });

export const isForeignParty = ({ headers }: Response): boolean => headers.has(FOREIGN_PARTY);
