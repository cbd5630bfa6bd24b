import { TimeoutStrategy, timeout } from 'cockatiel';
import { v7 as uuidV7 } from 'uuid';
import { database } from './db';
import { shareUnderWay } from './share-under-way';

/** The one link of an identity-provider user, and whether this call made it. */
export interface Registration {
  /** The internal user id, a UUID v7. */
  readonly userId: string;
  /** True for at most one of all calls, in all processes, that ever registered this identity-provider user. */
  readonly created: boolean;
}

/** Bounds a registration as a whole: each of its statements may wait for a connection and for the answer. */
const deadline = timeout(4_000, TimeoutStrategy.Aggressive);

async function findOrCreate(identityProviderUserId: string): Promise<Registration> {
  const { user } = database();
  const existing = await user.findUnique({ where: { identityProviderUserId } });
  if (existing) return { userId: existing.id, created: false };
  // ON CONFLICT DO NOTHING: a row comes back only to the call that inserted it.
  const [inserted] = await user.createManyAndReturn({
    data: [{ id: uuidV7(), identityProviderUserId }],
    skipDuplicates: true,
  });
  if (inserted) return { userId: inserted.id, created: true };
  const winner = await user.findUniqueOrThrow({ where: { identityProviderUserId } });
  return { userId: winner.id, created: false };
}

const sharedFindOrCreate = shareUnderWay((identityProviderUserId: string) =>
  deadline.execute(() => findOrCreate(identityProviderUserId)),
);

/**
 * Links an identity-provider user to an internal user exactly once and returns the link (SPEC 4.1, 5.2, 6.1).
 *
 * The unique column decides every race, also between processes: an existing user costs one statement, a new one two,
 * and a lost race three. Concurrent calls for one user in one process share these, failure included. Ends within 4 s;
 * throws what the database throws. Nothing is half done then, and the call can be repeated.
 */
export async function registerByIdentityProviderUserId(
  identityProviderUserId: string,
): Promise<Registration> {
  const { result, own } = await sharedFindOrCreate(identityProviderUserId);
  return { userId: result.userId, created: result.created && own };
}
