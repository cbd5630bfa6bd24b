import { batchLoader } from './concurrency/batch-loader';
import { singleFlight } from './concurrency/single-flight';
import { withTimeout } from './concurrency/with-timeout';
import { forgottenUntil } from './linking/forgotten';
import { insertLinks, linkedUserIds, retryOnConflict } from './linking/links';
import { withSpan } from './telemetry/with-span';

/** The link of an identity-provider user to an internal user. */
export interface Registration {
  /** The internal user id, a UUID v7. */
  readonly userId: string;
  /** True if this call created the link. At most one call in all processes creates a given link. */
  readonly created: boolean;
}

/**
 * Returns the outcome of a registration for logs and telemetry. The outcome is `forgotten` if an operator has deleted the user,
 * or if the caller passed an expired previous id. A previous id is a provider id that the command `users:relink` has replaced
 * with another id of the same user.
 */
export const outcomeOf = (registration: Registration | undefined): 'created' | 'existing' | 'forgotten' => {
  if (registration === undefined) return 'forgotten';
  return registration.created ? 'created' : 'existing';
};

/**
 * Time limit of a registration (`link`). The timeouts of the single statements are not enough, because they add up. The limit
 * leaves time for a database that has to wake up. The sum of the limit and the 500 ms of a cache call is below the 9 s that a
 * shutdown may take, and below the 15 s timeout of the webhook sender. A call with a session token may run two registrations
 * (`registerByIdentityProviderUserId`) and exceed the 9 s. A webhook call has no session token.
 */
const DEADLINE_MS = 8_000;

/** Finds the internal id of a linked user. Concurrent calls share a statement. */
const findUserId = batchLoader(linkedUserIds);

/**
 * Returns the link for the `userId` that a lookup found. The lookup finds null for an expired previous id, and this function
 * then returns undefined.
 */
const existingLink = (userId: string | null): Registration | undefined =>
  userId === null ? undefined : { userId, created: false };

async function findOrCreate(
  identityProviderUserId: string,
  issuedAt: number | undefined,
): Promise<Registration | undefined> {
  const existing = await findUserId(identityProviderUserId);
  if (existing !== undefined) return existingLink(existing);
  const [inserted] = await insertLinks([identityProviderUserId], issuedAt);
  if (inserted !== undefined) return { userId: inserted, created: true };
  const winner = await findUserId(identityProviderUserId);
  if (winner !== undefined) return existingLink(winner);
  if ((await forgottenUntil([identityProviderUserId], issuedAt)).size > 0) return undefined;
  throw new Error('A user was neither found nor created');
}

const link = (identityProviderUserId: string, issuedAt: number | undefined) =>
  withTimeout(
    DEADLINE_MS,
    retryOnConflict(() => findOrCreate(identityProviderUserId, issuedAt)),
  );
const sharedLink = singleFlight(link);

/**
 * Links an identity-provider user to an internal user exactly once and returns the link. Returns undefined for a forgotten
 * user, whom an operator has deleted, and for an expired previous id of a user (docs/contract.md, 3). `issuedAt` is the time at
 * which the user's own session token was issued, in seconds since 1970. A token that was issued after the deletion links the
 * user again. A call without `issuedAt` does not link the user again.
 *
 * The unique key prevents a second link, even in a race between processes and at any isolation level. A registration runs one
 * statement for an existing user, two for a new user, three if another process creates the link in the meantime, and four if
 * the user is forgotten. Concurrent calls for a user in one process share a registration. If the shared registration returns
 * undefined, each call that did not start it and has an `issuedAt` runs its own registration. Under load, one statement looks
 * up many users. Rejects with the error of the database, or if a registration takes longer than 8 s. A rejected call can be
 * repeated. If the rejected call has created the link, the next call returns that link.
 */
export function registerByIdentityProviderUserId(
  identityProviderUserId: string,
  issuedAt?: number,
): Promise<Registration | undefined> {
  return withSpan(
    'register',
    async () => {
      const { result, isLeader } = await sharedLink(identityProviderUserId, issuedAt);
      // The call that started the registration may have had an older token, or none. This call tries its own token.
      if (result === undefined && !isLeader && issuedAt !== undefined)
        return link(identityProviderUserId, issuedAt);
      return result && { userId: result.userId, created: result.created && isLeader };
    },
    outcomeOf,
  );
}
