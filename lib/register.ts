import { retryOnConflict, withTimeout } from './concurrency/attempts';
import { findLink, insertLink, isForgotten } from './linking/links';
import { withSpan } from './log';

/** The link of an identity-provider user to an internal user. */
export interface Registration {
  /** The internal user id. */
  readonly userId: string;
  /** True if this call created the link. At most one call in all processes creates a given link. */
  readonly created: boolean;
}

/** Returns the outcome of a registration for logs and telemetry. */
export function outcomeOf(registration: Registration | undefined): 'created' | 'existing' | 'forgotten' {
  if (registration === undefined) return 'forgotten';
  return registration.created ? 'created' : 'existing';
}

/**
 * Time limit of a registration, because the time limits of its statements add up. Leaves time for a database that wakes up, and
 * is below the 9 s of a shutdown and the 15 s after which a webhook sender gives up.
 */
const DEADLINE_MS = 8_000;

/** Calls `work`, again after a lost race against another transaction. Rejects with the error of the last call, or after 8 s. */
export const withinRegistrationTime = <T>(work: () => Promise<T>): Promise<T> =>
  withTimeout(DEADLINE_MS, retryOnConflict(work));

async function findOrCreate(
  identityProviderUserId: string,
  issuedAt: number | undefined,
): Promise<Registration | undefined> {
  const existing = await findLink(identityProviderUserId);
  if (existing !== undefined) return existing === null ? undefined : { userId: existing, created: false };
  const inserted = await insertLink(identityProviderUserId, issuedAt);
  if (inserted !== undefined) return { userId: inserted, created: true };
  // Another call has created the link, or the user is forgotten.
  const winner = await findLink(identityProviderUserId);
  if (typeof winner === 'string') return { userId: winner, created: false };
  if (winner === null || (await isForgotten(identityProviderUserId, issuedAt))) return undefined;
  throw new Error('A user was neither found nor created');
}

/**
 * Links an identity-provider user to an internal user exactly once and returns the link. The unique key prevents a second link,
 * even in a race between processes and at any isolation level.
 *
 * Returns undefined for a forgotten user, whom an operator has deleted, and for an expired previous id (docs/contract.md, 3).
 * `issuedAt` is the time at which the user's own session token was issued, in seconds since 1970. A token that was issued after
 * the deletion links the user again. Runs one statement for an existing user and two for a new one. Rejects with the error of
 * the database, or after 8 s. A rejected call can be repeated.
 */
export const registerByIdentityProviderUserId = (
  identityProviderUserId: string,
  issuedAt?: number,
): Promise<Registration | undefined> =>
  withSpan(
    'register',
    () => withinRegistrationTime(() => findOrCreate(identityProviderUserId, issuedAt)),
    outcomeOf,
  );
