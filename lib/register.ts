import { v7 as uuidV7 } from 'uuid';
import * as z from 'zod/mini';
import { batched } from './batch';
import { shareUnderWay } from './share-under-way';
import { step } from './telemetry';
import { within } from './within';

/** The one link of an identity-provider user, and whether this call made it. */
export interface Registration {
  /** The internal user id, a UUID v7. */
  readonly userId: string;
  /** True for at most one of all calls, in all processes, that ever registered this identity-provider user. */
  readonly created: boolean;
}

/** Bounds a registration as a whole: each of its statements may wait for a connection and for the answer. */
const DEADLINE_MS = 4_000;

/** Loaded when first needed: a process that finds its users in the cache never does. */
const users = async () => (await import('./db')).database().user;

/** The internal ids of those who are linked, by one statement. Throws what the database throws. */
export async function linkedUserIds(
  identityProviderUserIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = await (await users()).findMany({
    where: { identityProviderUserId: { in: [...identityProviderUserIds] } },
    select: { id: true, identityProviderUserId: true },
  });
  return new Map(found.map(({ id, identityProviderUserId }) => [identityProviderUserId, id]));
}

const findUserId = batched(linkedUserIds);

async function findOrCreate(identityProviderUserId: string): Promise<Registration> {
  const existing = await findUserId(identityProviderUserId);
  if (existing !== undefined) return { userId: existing, created: false };
  // ON CONFLICT DO NOTHING: a row comes back only to the call that inserted it.
  const [inserted] = await (await users()).createManyAndReturn({
    data: [{ id: uuidV7(), identityProviderUserId }],
    skipDuplicates: true,
    select: { id: true },
  });
  if (inserted) return { userId: inserted.id, created: true };
  const winner = await findUserId(identityProviderUserId);
  if (winner === undefined) throw new Error('A user was neither found nor created');
  return { userId: winner, created: false };
}

/** What Prisma says of a transaction that lost against another, in a database that isolates them by default. */
const LostRace = z.object({ code: z.literal('P2034') });
const MAX_ATTEMPTS = 5;

/** Whoever won has committed: the next attempt finds the row. */
async function inTheEnd<T>(work: () => Promise<T>, attempt = 1): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (attempt === MAX_ATTEMPTS || !LostRace.safeParse(error).success) throw error;
    return inTheEnd(work, attempt + 1);
  }
}

const sharedFindOrCreate = shareUnderWay((identityProviderUserId: string) =>
  within(
    DEADLINE_MS,
    inTheEnd(() => findOrCreate(identityProviderUserId)),
  ),
);

/**
 * Links an identity-provider user to an internal user exactly once and returns the link (contract 4.1, 5.2, 6.1).
 *
 * The unique column decides every race, also between processes: an existing user costs one statement, a new one two,
 * and a lost race three, at any isolation level. Concurrent calls for one user in one process share these, failure included, and under load one
 * look-up serves many users. Ends within 4 s; throws what the database throws. Nothing is half done then, and the call
 * can be repeated.
 */
export function registerByIdentityProviderUserId(identityProviderUserId: string): Promise<Registration> {
  return step(
    'register',
    async () => {
      const { result, own } = await sharedFindOrCreate(identityProviderUserId);
      return { userId: result.userId, created: result.created && own };
    },
    ({ created }) => (created ? 'created' : 'existing'),
  );
}

/**
 * Links those of many identity-provider users who are not linked, each exactly once, and returns how many this call linked.
 *
 * Two statements, one where all are linked; several hundred ids are well within the database's bounds. Races are decided as
 * above. Throws what the database throws: then some may be linked, and the call can be repeated.
 */
export async function registerMany(identityProviderUserIds: readonly string[]): Promise<number> {
  return inTheEnd(async () => {
    const linked = await linkedUserIds(identityProviderUserIds);
    const missing = identityProviderUserIds.filter((id) => !linked.has(id));
    if (missing.length === 0) return 0;
    const created = await (await users()).createManyAndReturn({
      data: missing.map((identityProviderUserId) => ({ id: uuidV7(), identityProviderUserId })),
      skipDuplicates: true,
      select: { id: true },
    });
    return created.length;
  });
}
