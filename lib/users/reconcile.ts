import { type Patience, patiently } from '../concurrency/retry';
import { MAX_USERS, readUsers, readUsersById } from '../idp/backend-api';
import { linkedUserIds } from '../linking/links';
import { ofDatabase } from './database-error';
import { paginate } from './paginate';
import { type Link, linksAfter } from './rows';

/** What a page of either side showed. */
export interface Comparison {
  /** Users of the provider, or rows, that were looked at. */
  readonly providerUsers: number;
  readonly rows: number;
  /** Users of the provider who are not linked. */
  readonly notLinked: readonly string[];
  /** Links of whom the provider knows nothing: deleted there, or never there. */
  readonly notAtProvider: readonly Link[];
}

const PAGE = 500;

/**
 * Compares the provider's users with the rows, page by page, in both directions. Who comes or goes meanwhile may be told as a
 * difference. Holds a page; ends with an error as a backfill does.
 */
export async function* compare(patience: Patience): AsyncGenerator<Comparison> {
  const pages = paginate((page) => patiently(patience, () => readUsers(page)), { limit: MAX_USERS });
  for await (const { users } of pages) {
    const ids = users.map(({ id }) => id);
    // An id with a NUL cannot be asked for; it cannot be linked either.
    const linked = await patiently(patience, () =>
      ofDatabase(linkedUserIds(ids.filter((id) => !id.includes('\0')))),
    );
    const notLinked = ids.filter((id) => !linked.has(id));
    yield { providerUsers: users.length, rows: 0, notLinked, notAtProvider: [] };
  }
  for (let last: Link | undefined; ; ) {
    const links = await patiently(patience, () => linksAfter(last?.userId, PAGE));
    const ids = links.map(({ identityProviderUserId }) => identityProviderUserId);
    const known = new Set((await patiently(patience, () => readUsersById(ids))).map(({ id }) => id));
    const notAtProvider = links.filter(({ identityProviderUserId }) => !known.has(identityProviderUserId));
    yield { providerUsers: 0, rows: links.length, notLinked: [], notAtProvider };
    last = links.at(-1);
    if (links.length < PAGE) return;
  }
}
