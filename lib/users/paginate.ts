import type { ProviderPage, ProviderUser } from '../idp/backend-api';

/** A position in the provider's list of users. */
export interface Cursor {
  /** Creation time of the last user, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** Users before this position that the next request can return again. */
  readonly seen: readonly ProviderUser[];
}

/** Consecutive users of the provider, and the position after them. */
export interface UserPage {
  readonly users: readonly ProviderUser[];
  readonly cursor: Cursor;
}

/** Maximum number of times that the offset starts again at 0 for users of the same creation time. */
const MAX_RESTARTS = 20;

/** Throws if the users are not sorted by creation time, because the pagination could then end early or never. */
function requireOrder(rows: readonly ProviderUser[], createdAfter = Number.NEGATIVE_INFINITY): void {
  let previous = createdAfter;
  for (const { createdAt } of rows) {
    if (createdAt < previous) throw new Error('The identity provider does not list its users in order');
    previous = createdAt;
  }
}

/** Returns the position after these users. */
function advance(cursor: Cursor | undefined, users: readonly ProviderUser[]): Cursor {
  const all = cursor ? [...cursor.seen, ...users] : users;
  const createdAt = users.reduce((latest, user) => Math.max(latest, user.createdAt), cursor?.createdAt ?? 0);
  // The next request starts one millisecond before the last user.
  return { createdAt, seen: all.filter((user) => user.createdAt >= createdAt - 1) };
}

/**
 * Yields the provider's users in pages, oldest first, each user once. Users that exist during the whole run are not missed when
 * others are created or deleted at the same time. Passes errors of `read` through. A later run can continue from the last
 * cursor.
 *
 * The API returns only users that were created after the requested time. Other users can have the creation time of the last
 * user, so each request starts one millisecond before that time. A page can therefore begin with users that an earlier request
 * returned. These users are skipped. The API returns times in milliseconds, but does not document the resolution of the stored
 * times. If it stores microseconds, a page can also begin with users whose returned time equals the requested time.
 *
 * If more users have the same creation time than fit on a page, the next request has an offset. The first row of the response
 * must be the last row of the previous page. `limit` must therefore be at least 2. If the rows differ, the offset starts again
 * at 0, because a user was probably deleted or created in between. Throws if this happens more than 20 times, because the
 * provider then does not list these users in a fixed order.
 *
 * Does not use the API's parameter `starting_after`, because its value is the id of a user, and the user may have been deleted.
 */
export async function* paginate(
  read: (page: ProviderPage) => Promise<readonly ProviderUser[]>,
  { from, limit }: { from?: Cursor | undefined; limit: number },
): AsyncGenerator<UserPage> {
  let cursor = from;
  let offset = 0;
  let lastId: string | undefined;
  for (let restarts = 0; ; ) {
    const createdAfter = cursor && cursor.createdAt - 1;
    const rows = await read({ createdAfter, offset, limit });
    requireOrder(rows, createdAfter);
    if (offset > 0 && rows[0]?.id !== lastId) {
      restarts += 1;
      if (restarts > MAX_RESTARTS)
        throw new Error('The identity provider lists users of the same time in a different order each time');
      offset = 0;
      continue;
    }
    const seen = new Set(cursor?.seen.map(({ id }) => id));
    const users = rows.filter(({ id }) => !seen.has(id));
    const next = advance(cursor, users);
    if (users.length > 0) yield { users, cursor: next };
    if (rows.length < limit) return;
    const isSameTime = next.createdAt === cursor?.createdAt;
    if (!isSameTime) restarts = 0;
    offset = isSameTime ? offset + rows.length - 1 : 0;
    lastId = rows.at(-1)?.id;
    cursor = next;
  }
}
