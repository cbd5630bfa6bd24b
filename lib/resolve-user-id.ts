import { noteFacts, type RequestFacts } from './log';
import { registerByIdentityProviderUserId } from './register';
import { shareUnderWay } from './share-under-way';
import { step } from './telemetry';
import { cacheUserId, readCachedUserId } from './user-id-cache';

interface ResolvedUserId {
  readonly userId: string;
  readonly facts: Pick<RequestFacts, 'cache' | 'caller'>;
}

async function lookUp(identityProviderUserId: string): Promise<ResolvedUserId> {
  const cached = await step(
    'cache read',
    () => readCachedUserId(identityProviderUserId),
    ({ outcome }) => outcome,
  );
  if (cached.outcome === 'hit') return { userId: cached.userId, facts: { cache: 'hit' } };
  const { userId, created } = await registerByIdentityProviderUserId(identityProviderUserId);
  const caller = created ? 'created' : 'existing';
  // A cache that has just failed would cost this request the bound a second time.
  if (cached.outcome === 'fault') return { userId, facts: { cache: 'bypass', caller } };
  await step(
    'cache write',
    () => cacheUserId(identityProviderUserId, userId),
    (outcome) => outcome,
  );
  return { userId, facts: { cache: 'miss', caller } };
}

const sharedLookUp = shareUnderWay(lookUp);

/**
 * The internal id of an identity-provider user, from the cache or by registration on first sight (contract 5.2, rule 3).
 *
 * Concurrent calls for one user in one process share one look-up, failure included. Throws what the database throws.
 */
export async function resolveUserId(identityProviderUserId: string): Promise<string> {
  const { result, own } = await sharedLookUp(identityProviderUserId);
  const { userId, facts } = result;
  // Of those who share a look-up, one has created the user.
  noteFacts(own || facts.caller === undefined ? facts : { ...facts, caller: 'existing' });
  return userId;
}
