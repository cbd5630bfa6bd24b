import { type RetryOptions, retry } from '../base/retry';
import type { Kind } from '../core/ports';
import { mainProvider } from '../main-provider';
import type { Directory, ProviderEntry, ProviderPage } from '../provider-port';
import type { Provider } from '../providers';

/** Maximum number of entries in one response. */
const MAX_PAGE = 500;

let loading: Promise<Directory> | undefined;

/** Returns the users and organizations of the main provider. Throws if it does not list them. */
export function directory(): Promise<Directory> {
  loading ??= mainProvider.directory?.load();
  if (loading === undefined) throw new Error(`${mainProvider.name} does not list its users`);
  return loading;
}

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
  paginate((page) => retry(retryOptions, async () => (await directory()).listPage('user', page)), {
    since,
    limit: MAX_PAGE,
  });

/**
 * Yields all organizations of the provider in pages of 500. Retries failing requests. The API cannot start a list of
 * organizations at a creation time, so the deletion of one during the run can hide another.
 */
export async function* providerOrganizations(
  retryOptions: RetryOptions,
): AsyncGenerator<readonly ProviderEntry[]> {
  for (let offset = 0; ; offset += MAX_PAGE) {
    const page = await retry(retryOptions, async () =>
      (await directory()).listPage('tenant', { offset, limit: MAX_PAGE }),
    );
    if (page.length > 0) yield page;
    if (page.length < MAX_PAGE) return;
  }
}

/** Returns the name of the provider that has each of these ids: the main one, or one of the others. */
export async function holdersOf(
  kind: Kind,
  ids: readonly string[],
  others: readonly Provider[],
  retryOptions: RetryOptions,
): Promise<ReadonlyMap<string, string>> {
  const list = async () => (await directory()).listById(kind, ids);
  const listed = mainProvider.directory ? await retry(retryOptions, list) : [];
  const holders = new Map(listed.map(({ id }) => [id, mainProvider.name]));
  for (const provider of others)
    for (const id of (await provider.has?.(kind, ids)) ?? []) holders.set(id, provider.name);
  return holders;
}
