import { type RetryOptions, retry } from '../base/retry';
import { listUsersById } from '../idp/backend-api';
import { providerUsers } from './paginate';
import type { UserResult } from './result';
import { allIdsOf, type Link, linksAfter, lookUp } from './rows';

/** Result for one user of the provider, or for one row. */
export interface ReconcileResult extends UserResult {
  readonly outcome: 'linked' | 'forgotten' | 'not linked' | 'at the provider' | 'not at the provider';
}

const ROWS_PER_PAGE = 500;

/**
 * Compares the users of the provider with the rows of the table `users`, page by page and in both directions. A row is at the
 * provider if its user exists there under the present id or a previous id. A user that is created or deleted during the run can appear as a difference. Throws if the provider or the database rejects a request, or
 * fails for longer than `retryOptions.seconds`.
 */
export async function* reconcile(retryOptions: RetryOptions): AsyncGenerator<ReconcileResult[]> {
  for await (const users of providerUsers(retryOptions)) {
    const ids = users.map(({ id }) => id);
    // PostgreSQL does not accept an id that contains a NUL, so the query omits such ids. They count as not linked.
    const storable = ids.filter((id) => !id.includes('\0'));
    const { linked, forgotten } = await retry(retryOptions, () => lookUp(storable));
    yield ids.map((id): ReconcileResult => {
      if (linked.has(id)) return { id, outcome: 'linked' };
      return forgotten.has(id)
        ? { id, outcome: 'forgotten' }
        : { id, outcome: 'not linked', reason: 'run a backfill' };
    });
  }
  for (let last: Link | undefined; ; ) {
    const links = await retry(retryOptions, () => linksAfter(last?.userId, ROWS_PER_PAGE));
    const ids = links.flatMap(allIdsOf);
    const known = new Set((await retry(retryOptions, () => listUsersById(ids))).map(({ id }) => id));
    yield links.map((link): ReconcileResult => {
      const { identityProviderUserId: id, userId } = link;
      return allIdsOf(link).some((each) => known.has(each))
        ? { id, outcome: 'at the provider' }
        : { id, outcome: 'not at the provider', reason: userId };
    });
    last = links.at(-1);
    if (links.length < ROWS_PER_PAGE) return;
  }
}
