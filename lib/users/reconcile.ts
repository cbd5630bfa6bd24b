import { type RetryOptions, retry } from '../concurrency/retry';
import { listUsers, listUsersById, MAX_USERS } from '../idp/backend-api';
import { forgottenUntil } from '../linking/forgotten';
import { linkedUserIds } from '../linking/links';
import { asTransientError } from './database-error';
import { paginate } from './paginate';
import { allIdsOf, type Link, linksAfter } from './rows';

/** Result for one page of users or rows. */
export interface ReconcileStep {
  /** Number of the provider's users on this page, or 0 for a page of rows. */
  readonly providerUsers: number;
  readonly rows: number;
  /** Number of users of the provider that are not linked because an operator has deleted ("forgotten") them. */
  readonly forgotten: number;
  /** Ids of users of the provider that are neither linked nor forgotten. */
  readonly notLinked: readonly string[];
  /** Links whose user does not exist at the provider, neither under the present id nor under a previous id. */
  readonly notAtProvider: readonly Link[];
}

const ROWS_PER_PAGE = 500;

/**
 * Compares the users of the provider with the rows of the table `users`, page by page and in both directions. A user that is
 * created or deleted during the run can appear as a difference. Throws if the provider or the database rejects a request, or
 * fails for longer than `retryOptions.seconds`.
 */
export async function* reconcile(retryOptions: RetryOptions): AsyncGenerator<ReconcileStep> {
  const pages = paginate((page) => retry(retryOptions, () => listUsers(page)), { limit: MAX_USERS });
  for await (const { users } of pages) {
    const ids = users.map(({ id }) => id);
    // PostgreSQL does not accept an id that contains a NUL, so the query omits such ids. They count as not linked.
    const storable = ids.filter((id) => !id.includes('\0'));
    const linked = await retry(retryOptions, () => asTransientError(linkedUserIds(storable)));
    const missing = storable.filter((id) => !linked.has(id));
    const forgotten = await retry(retryOptions, () => asTransientError(forgottenUntil(missing)));
    const notLinked = ids.filter((id) => !linked.has(id) && !forgotten.has(id));
    yield { providerUsers: users.length, rows: 0, forgotten: forgotten.size, notLinked, notAtProvider: [] };
  }
  for (let last: Link | undefined; ; ) {
    const links = await retry(retryOptions, () => linksAfter(last?.userId, ROWS_PER_PAGE));
    const ids = links.flatMap(allIdsOf);
    const known = new Set((await retry(retryOptions, () => listUsersById(ids))).map(({ id }) => id));
    const notAtProvider = links.filter((link) => !allIdsOf(link).some((id) => known.has(id)));
    yield { providerUsers: 0, rows: links.length, forgotten: 0, notLinked: [], notAtProvider };
    last = links.at(-1);
    if (links.length < ROWS_PER_PAGE) return;
  }
}
