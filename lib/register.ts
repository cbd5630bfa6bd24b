import { batchLoader } from './concurrency/batch-loader';
import { singleFlight } from './concurrency/single-flight';
import { withTimeout } from './concurrency/with-timeout';
import { insertLinks, linkedUserIds, retryOnConflict } from './linking/links';
import { cacheUserId, readCachedUserId } from './linking/user-id-cache';
import { addLogFields, type RequestLogFields } from './log';
import { withSpan } from './telemetry/with-span';

/** The link of an identity-provider user to an internal user. */
export interface Registration {
  /** The internal user id, a UUID v7. */
  readonly userId: string;
  /** True if this call created the link. At most one call in all processes ever returns true for a user. */
  readonly created: boolean;
}

/**
 * Limits a registration as a whole, because each of its statements may wait for a connection and for the response. The
 * deadline leaves time for a database that has to wake up. Together with the 500 ms of the cache, it is below the 9 s of a
 * shutdown and the 15 s of the webhook's sender.
 */
const DEADLINE_MS = 8_000;

const findUserId = batchLoader(linkedUserIds);

async function findOrCreate(identityProviderUserId: string): Promise<Registration> {
  const existing = await findUserId(identityProviderUserId);
  if (existing !== undefined) return { userId: existing, created: false };
  const [inserted] = await insertLinks([identityProviderUserId]);
  if (inserted !== undefined) return { userId: inserted, created: true };
  const winner = await findUserId(identityProviderUserId);
  if (winner === undefined) throw new Error('A user was neither found nor created');
  return { userId: winner, created: false };
}

const sharedFindOrCreate = singleFlight((identityProviderUserId: string) =>
  withTimeout(
    DEADLINE_MS,
    retryOnConflict(() => findOrCreate(identityProviderUserId)),
  ),
);

/**
 * Links an identity-provider user to an internal user exactly once and returns the link (contract 4.1, 5.2, 6.1).
 *
 * The unique key decides every race, also between processes and at any isolation level. An existing user takes one statement,
 * a new one two, a lost race three. Concurrent calls for a user in one process share the result or the error. Under load, one
 * statement looks up many users. Rejects after 8 s or with the error of the database. A rejected call
 * can be repeated, because each statement is atomic.
 */
export function registerByIdentityProviderUserId(identityProviderUserId: string): Promise<Registration> {
  return withSpan(
    'register',
    async () => {
      const { result, isLeader } = await sharedFindOrCreate(identityProviderUserId);
      return { userId: result.userId, created: result.created && isLeader };
    },
    ({ created }) => (created ? 'created' : 'existing'),
  );
}

interface ResolvedUserId {
  readonly userId: string;
  readonly facts: Pick<RequestLogFields, 'cache' | 'caller'>;
}

async function readOrRegister(identityProviderUserId: string): Promise<ResolvedUserId> {
  const cached = await withSpan(
    'cache read',
    () => readCachedUserId(identityProviderUserId),
    ({ outcome }) => outcome,
  );
  if (cached.outcome === 'hit') return { userId: cached.userId, facts: { cache: 'hit' } };
  const { userId, created } = await registerByIdentityProviderUserId(identityProviderUserId);
  const caller = created ? 'created' : 'existing';
  // Writing to a cache that has just failed would make this request wait a second time.
  if (cached.outcome === 'error') return { userId, facts: { cache: 'bypass', caller } };
  await withSpan(
    'cache write',
    () => cacheUserId(identityProviderUserId, userId),
    (outcome) => outcome,
  );
  return { userId, facts: { cache: 'miss', caller } };
}

const sharedReadOrRegister = singleFlight(readOrRegister);

/**
 * Returns the internal id of an identity-provider user from the cache, or registers the user on first sight (contract 5.2,
 * rule 3). Concurrent calls for a user in one process share the result or the error. Passes database errors through. A cache
 * error is never passed on.
 */
export async function resolveUserId(identityProviderUserId: string): Promise<string> {
  const { result, isLeader } = await sharedReadOrRegister(identityProviderUserId);
  const { userId, facts } = result;
  // If several requests share a registration, only one of them is logged as the one that created the user.
  addLogFields(isLeader || facts.caller === undefined ? facts : { ...facts, caller: 'existing' });
  return userId;
}
