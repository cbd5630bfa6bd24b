import type { ProviderPage, ProviderUser } from '../idp/backend-api';

/** How far a walk has come: up to this user, and so many of the users of the same millisecond. */
export interface Place {
  readonly createdAt: number;
  readonly id: string;
  readonly count: number;
}

/** Users who follow each other at the provider, and the place after them. */
export interface Step {
  readonly users: readonly ProviderUser[];
  readonly place: Place;
}

const MAX_BEGUN_ANEW = 20;

/** A list that is not in order would end the walk early or never. */
function requireOrder(users: readonly ProviderUser[], createdAfter: number | undefined): void {
  let before = createdAfter === undefined ? Number.NEGATIVE_INFINITY : createdAfter + 1;
  for (const { createdAt } of users) {
    if (createdAt < before) throw new Error('The identity provider does not list its users in order');
    before = createdAt;
  }
}

/**
 * Goes through the provider's users, the oldest first, and misses nobody who is there all the time, whoever comes and goes
 * meanwhile. Holds one page. What `read` throws ends it; from the last place another walk goes on.
 *
 * By time, though the provider has a cursor by id (`starting_after`) too: a time outlives the user that it came from.
 * A page begins at the millisecond of the last user, for others may have the same: an offset counts only within it. Its
 * first row must be that last user; otherwise somebody of that millisecond is gone or new, and it is read from its start.
 * Then, and only then, a user comes twice.
 */
export async function* walk(
  read: (page: ProviderPage) => Promise<readonly ProviderUser[]>,
  { from, limit }: { from?: Place | undefined; limit: number },
): AsyncGenerator<Step> {
  let place = from;
  for (let anew = 0; ; ) {
    const createdAfter = place === undefined ? undefined : place.createdAt - 1;
    const offset = Math.max((place?.count ?? 0) - 1, 0);
    const page = await read({ createdAfter, offset, limit });
    requireOrder(page, createdAfter);
    const joins = place !== undefined && page[0]?.id === place.id;
    if (!joins && place !== undefined && offset > 0) {
      anew += 1;
      if (anew > MAX_BEGUN_ANEW)
        throw new Error('The identity provider lists the users of one millisecond in ever another order');
      place = { ...place, count: 0 };
      continue;
    }
    const users = joins ? page.slice(1) : page;
    const last = users.at(-1);
    if (last !== undefined) {
      if (last.createdAt !== place?.createdAt) anew = 0;
      const alike = users.filter(({ createdAt }) => createdAt === last.createdAt).length;
      const before: number = joins && place?.createdAt === last.createdAt ? place.count : 0;
      place = { createdAt: last.createdAt, id: last.id, count: before + alike };
      yield { users, place };
    }
    if (page.length < limit) return;
  }
}
