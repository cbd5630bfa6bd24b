import { type RetryOptions, retry } from '../base/retry';
import { listById, listPage, MAX_PAGE, type ProviderEntry, type ProviderPage } from '../clerk/backend-api';
import type { Kind } from '../core/ports';
import type { Provider } from '../providers';

/**
 * Yields the provider's users in pages, oldest first, each once, from those that were created at `since`. Misses no user that
 * exists during the whole run, unless more than `limit` users have one creation time and one of them is deleted.
 *
 * The API returns only users that were created after the requested time, so each request starts one millisecond before the
 * creation time of the last user, and skips what was returned. If a whole page has one creation time, the next request has an
 * offset.
 */
export async function* paginate(
  read: (page: ProviderPage) => Promise<readonly ProviderEntry[]>,
  { since, limit }: { readonly since?: Date | undefined; readonly limit: number },
): AsyncGenerator<readonly ProviderEntry[]> {
  let createdAfter = since && since.getTime() - 1;
  let offset = 0;
  let seen: readonly ProviderEntry[] = [];
  for (;;) {
    const page = await read({ createdAfter, offset, limit });
    // Without this check, the pagination might not end.
    if (page.some(({ createdAt }) => createdAt < (createdAfter ?? 0)))
      throw new Error('The identity provider returns users that were created before the requested time');
    const seenIds = new Set(seen.map(({ id }) => id));
    const users = page.filter(({ id }) => !seenIds.has(id));
    if (users.length > 0) yield users;
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return;
    const next = Math.max(last.createdAt - 1, createdAfter ?? 0);
    offset = next === createdAfter ? offset + limit : 0;
    createdAfter = next;
    seen = [...seen, ...users].filter(({ createdAt }) => createdAt >= next);
  }
}

/** Yields all users of the provider, or those that were created since a time, in pages of 500. Retries failing requests. */
export const providerUsers = (retryOptions: RetryOptions, since?: Date) =>
  paginate((page) => retry(retryOptions, () => listPage('user', page)), { since, limit: MAX_PAGE });

/**
 * Yields all organizations of the provider in pages of 500. Retries failing requests. The API cannot start a list of
 * organizations at a creation time, so the deletion of one during the run can hide another.
 */
export async function* providerOrganizations(
  retryOptions: RetryOptions,
): AsyncGenerator<readonly ProviderEntry[]> {
  for (let offset = 0; ; offset += MAX_PAGE) {
    const page = await retry(retryOptions, () => listPage('tenant', { offset, limit: MAX_PAGE }));
    if (page.length > 0) yield page;
    if (page.length < MAX_PAGE) return;
  }
}

/** Returns the name of the provider that has each of these ids: Clerk, or one of the others. */
export async function holdersOf(
  kind: Kind,
  ids: readonly string[],
  others: readonly Provider[],
  retryOptions: RetryOptions,
): Promise<ReadonlyMap<string, string>> {
  const ofClerk = await retry(retryOptions, () => listById(kind, ids));
  const holders = new Map(ofClerk.map(({ id }) => [id, 'Clerk']));
  for (const provider of others)
    for (const id of (await provider.has?.(kind, ids)) ?? []) holders.set(id, provider.name);
  return holders;
}
