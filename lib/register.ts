import { v7 as uuidV7 } from 'uuid';
import * as z from 'zod/mini';
import { batched } from './batch';
import { shareUnderWay } from './share-under-way';
import { sqlStateOf } from './sql-state';
import { step } from './telemetry';
import { within } from './within';

/** The one link of an identity-provider user, and whether this call made it. */
export interface Registration {
  /** The internal user id, a UUID v7. */
  readonly userId: string;
  /** True for at most one of all calls, in all processes, that ever registered this identity-provider user. */
  readonly created: boolean;
}

/**
 * Limits a registration as a whole, because each of its statements may wait for a connection and for the response. The
 * deadline leaves time for a database that has to wake up. Together with the 500 ms of the cache, it is below the 9 s of a
 * shutdown and the 15 s of the webhook's sender.
 */
const DEADLINE_MS = 8_000;

/** Loaded when first needed: a process that finds its users in the cache never does. */
const database = async () => (await import('./db')).database();

/** The internal ids of those who are linked, by one statement. Throws what the database throws. */
export async function linkedUserIds(
  identityProviderUserIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = await (await database()).user.findMany({
    where: { identityProviderUserId: { in: [...identityProviderUserIds] } },
    select: { id: true, identityProviderUserId: true },
  });
  return new Map(found.map(({ id, identityProviderUserId }) => [identityProviderUserId, id]));
}

const findUserId = batched(linkedUserIds);

const Inserted = z.array(z.object({ id: z.guid() }));

/**
 * Inserts those who are not linked, and returns the internal ids of the rows that this statement made: a row comes back only
 * to the statement that inserted it.
 *
 * In SQL, for Prisma plans a `createManyAndReturn` anew each time. The conflict is named: without the unique key the
 * statement fails, and links nobody twice.
 */
async function insertLinks(identityProviderUserIds: readonly string[]): Promise<string[]> {
  const ids = identityProviderUserIds.map(() => uuidV7());
  const inserted = await (await database()).$queryRaw`INSERT INTO public.users (id, identity_provider_user_id)
    SELECT * FROM unnest(${ids}::uuid[], ${identityProviderUserIds}::text[])
    ON CONFLICT (identity_provider_user_id) DO NOTHING
    RETURNING id`;
  return Inserted.parse(inserted).map(({ id }) => id);
}

async function findOrCreate(identityProviderUserId: string): Promise<Registration> {
  const existing = await findUserId(identityProviderUserId);
  if (existing !== undefined) return { userId: existing, created: false };
  const [inserted] = await insertLinks([identityProviderUserId]);
  if (inserted !== undefined) return { userId: inserted, created: true };
  const winner = await findUserId(identityProviderUserId);
  if (winner === undefined) throw new Error('A user was neither found nor created');
  return { userId: winner, created: false };
}

/**
 * What PostgreSQL says to who lost against another: in a database that isolates transactions by default, by a deadlock, and
 * by an index of the link that is being made anew, whose conflict no statement can name yet.
 */
const LOST_RACE: ReadonlySet<string | undefined> = new Set(['40001', '40P01', '23505']);
const MAX_ATTEMPTS = 5;

/** Whoever won has committed: the next attempt finds the row. */
async function inTheEnd<T>(work: () => Promise<T>, attempt = 1): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (attempt === MAX_ATTEMPTS || !LOST_RACE.has(sqlStateOf(error))) throw error;
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
 * and a lost race three, at any isolation level. Concurrent calls for one user in one process share these statements and
 * their errors. Under load one lookup serves many users.
 *
 * Settles within 8 s and passes database errors through. After a rejection the link is made or not, and the call can be repeated.
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
    return missing.length === 0 ? 0 : (await insertLinks(missing)).length;
  });
}
