import { type RetryOptions, retry } from '../concurrency/retry';
import { listUsersById } from '../idp/backend-api';
import { providerUsers } from './paginate';
import { allIdsOf, type Link, linksAfter, lookUp } from './rows';

/** Result for one page of the provider's users, or for one page of rows. */
export interface ReconcileStep {
  readonly providerUsers: number;
  readonly rows: number;
  /** Number of users of the provider that are not linked because an operator has deleted ("forgotten") them. */
  readonly forgotten: number;
  /** Ids of users of the provider that are neither linked nor forgotten. */
  readonly notLinked: readonly string[];
  /** Links whose user does not exist at the provider, neither under the present id nor under a previous id. */
  readonly notAtProvider: readonly Link[];
}

const NOTHING: ReconcileStep = { providerUsers: 0, rows: 0, forgotten: 0, notLinked: [], notAtProvider: [] };
const ROWS_PER_PAGE = 500;

/**
 * Compares the users of the provider with the rows of the table `users`, page by page and in both directions. A user that is
 * created or deleted during the run can appear as a difference. Throws if the provider or the database rejects a request, or
 * fails for longer than `retryOptions.seconds`.
 */
export async function* reconcile(retryOptions: RetryOptions): AsyncGenerator<ReconcileStep> {
  for await (const users of providerUsers(retryOptions)) {
    const ids = users.map(({ id }) => id);
    // PostgreSQL does not accept an id that contains a NUL, so the query omits such ids. They count as not linked.
    const storable = ids.filter((id) => !id.includes('\0'));
    const { linked, forgotten } = await retry(retryOptions, () => lookUp(storable));
    const notLinked = ids.filter((id) => !linked.has(id) && !forgotten.has(id));
    yield { ...NOTHING, providerUsers: users.length, forgotten: forgotten.size, notLinked };
  }
  for (let last: Link | undefined; ; ) {
    const links = await retry(retryOptions, () => linksAfter(last?.userId, ROWS_PER_PAGE));
    const ids = links.flatMap(allIdsOf);
    const known = new Set((await retry(retryOptions, () => listUsersById(ids))).map(({ id }) => id));
    const notAtProvider = links.filter((link) => !allIdsOf(link).some((id) => known.has(id)));
    yield { ...NOTHING, rows: links.length, notAtProvider };
    last = links.at(-1);
    if (links.length < ROWS_PER_PAGE) return;
  }
}
