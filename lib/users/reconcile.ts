import { type RetryOptions, retry } from '../concurrency/retry';
import { listUsers, listUsersById, MAX_USERS } from '../idp/backend-api';
import { linkedUserIds } from '../linking/links';
import { asTransientError } from './database-error';
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
export async function* compare(patience: RetryOptions): AsyncGenerator<Comparison> {
  const pages = paginate((page) => retry(patience, () => listUsers(page)), { limit: MAX_USERS });
  for await (const { users } of pages) {
    const ids = users.map(({ id }) => id);
    // An id with a NUL cannot be asked for; it cannot be linked either.
    const linked = await retry(patience, () =>
      asTransientError(linkedUserIds(ids.filter((id) => !id.includes('\0')))),
    );
    const notLinked = ids.filter((id) => !linked.has(id));
    yield { providerUsers: users.length, rows: 0, notLinked, notAtProvider: [] };
  }
  for (let last: Link | undefined; ; ) {
    const links = await retry(patience, () => linksAfter(last?.userId, PAGE));
    const ids = links.map(({ identityProviderUserId }) => identityProviderUserId);
    const known = new Set((await retry(patience, () => listUsersById(ids))).map(({ id }) => id));
    const notAtProvider = links.filter(({ identityProviderUserId }) => !known.has(identityProviderUserId));
    yield { providerUsers: 0, rows: links.length, notLinked: [], notAtProvider };
    last = links.at(-1);
    if (links.length < PAGE) return;
  }
}
