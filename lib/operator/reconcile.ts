import { type RetryOptions, retry } from '../base/retry';
import type { Kind } from '../core/ports';
import { mainProvider } from '../main-provider';
import type { Provider } from '../providers';
import { holdersOf, providerOrganizations, providerUsers } from './paginate';
import { allIdsOf, type LinkResult, type LinkRow, lookUp, rowsAfter } from './rows';

/** Result for one user or organization of the provider, or for one row. */
export interface ReconcileResult extends LinkResult {
  readonly outcome: 'linked' | 'forgotten' | 'not linked' | 'at the provider' | 'not at the provider';
}

const ROWS_PER_PAGE = 500;

/**
 * Compares the users or organizations of the provider with the rows of their table, in both directions. A row is at the provider
 * if the provider has its present id or a previous one. An unlinked user is a difference. An unlinked organization is not,
 * because its first request creates the tenant. An id that is created or deleted during the run can appear as a difference.
 *
 * Throws if the provider or the database rejects a request, or fails for longer than `retryOptions.seconds`.
 */
export async function* reconcile(
  kind: Kind,
  retryOptions: RetryOptions,
  others: readonly Provider[] = [],
): AsyncGenerator<ReconcileResult[]> {
  const missing = kind === 'user' ? { reason: 'run a backfill' } : {};
  const list = kind === 'user' ? providerUsers : providerOrganizations;
  for await (const page of mainProvider.directory ? list(retryOptions) : []) {
    const ids = page.map(({ id }) => id);
    // PostgreSQL does not accept an id that contains a NUL, so the query omits such ids. They count as not linked.
    const storable = ids.filter((id) => !id.includes('\0'));
    const { linked, forgotten } = await retry(retryOptions, () => lookUp(kind, storable));
    yield ids.map((id): ReconcileResult => {
      if (linked.has(id)) return { id, outcome: 'linked' };
      return forgotten.has(id) ? { id, outcome: 'forgotten' } : { id, outcome: 'not linked', ...missing };
    });
  }
  for (let last: LinkRow | undefined; ; ) {
    const links = await retry(retryOptions, () => rowsAfter(kind, last?.internalId, ROWS_PER_PAGE));
    const ids = links.flatMap(allIdsOf);
    const known = await holdersOf(kind, ids, others, retryOptions);
    yield links.map((link): ReconcileResult => {
      const { providerId: id, internalId } = link;
      return allIdsOf(link).some((each) => known.has(each))
        ? { id, outcome: 'at the provider' }
        : { id, outcome: 'not at the provider', reason: internalId };
    });
    last = links.at(-1);
    if (links.length < ROWS_PER_PAGE) return;
  }
}
