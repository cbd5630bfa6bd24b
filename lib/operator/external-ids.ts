import { InternalUserId } from '../api/schemas';
import { type RetryOptions, retry, retryOnConflict } from '../base/retry';
import type { Kind } from '../core/ports';
import { isIdentityProviderUserId, RESERVED } from '../core/values';
import { forgottenUntil, KINDS } from '../ids/store';
import { database, raw, sql } from '../storage/database';
import { restoreLinks, TRANSACTION } from './delete-link';
import { type Change, recordChanges } from './history';
import { directory, providerUsers } from './paginate';
import { type LinkResult, lookUp, selectIds } from './rows';

// A team can set the `external_id` of a user at the provider. A request never depends on it.

/** Returns true for a UUID in lower case that can be an internal id. */
const isUsable = (id: string): boolean => InternalUserId.safeParse(id).success && !RESERVED.test(id);

/** A user with its `external_id`, or an organization with the internal id that an operator gives it. */
export interface Adoption {
  readonly id: string;
  readonly externalId?: string | null | undefined;
}

/**
 * Reads the links of users or organizations. An expired previous id counts as forgotten. A forgotten organization does only while
 * its deletion is pending, because an operator who adopts it names it.
 */
async function readEntries(kind: Kind, entries: readonly Adoption[]) {
  const ids = entries.map(({ id }) => id).filter(isIdentityProviderUserId);
  const { linked, forgotten } = await lookUp(kind, ids);
  const pending = await selectIds(sql`SELECT provider_id AS id FROM public.pending_deletions
    WHERE kind = ${kind} AND provider_id = ANY (${ids}::text[])`);
  const lost = kind === 'user' ? forgotten : new Set(pending);
  const usable = entries.flatMap(({ externalId }) => externalId ?? []).filter(isUsable);
  const former = kind === 'user' ? await forgottenUntil(kind, usable) : new Map();
  return entries.map(({ id, externalId }) => ({
    id,
    externalId: externalId ?? '',
    /** True if `externalId` is the internal id of a forgotten user. */
    isFormerId: former.has(externalId ?? ''),
    internalId: linked.get(id)?.id,
    isForgotten: linked.get(id)?.state === 'forgotten' || lost.has(id),
  }));
}

/** Returns the results of a dry run. */
async function planAdoption(kind: Kind, entries: readonly Adoption[]): Promise<LinkResult[]> {
  const uuids = entries.flatMap(({ externalId }) => externalId ?? []).filter(isUsable);
  const taken = await selectIds(
    sql`SELECT id FROM public.${raw(KINDS[kind].table)} WHERE id = ANY (${uuids}::uuid[])`,
  );
  const [noun, given] = kind === 'user' ? ['user', 'external_id'] : ['organization', 'the id'];
  return (await readEntries(kind, entries)).map(({ id, externalId, isFormerId, internalId, isForgotten }) => {
    const reject = (reason: string) => ({ id, outcome: 'not adopted', reason });
    const isUuid = uuids.includes(externalId);
    if (isForgotten && kind === 'user') return { id, outcome: 'forgotten' };
    if (isForgotten) return reject('its deletion is pending, or it is a previous id after its window');
    if (internalId !== undefined) {
      if (!isUuid || internalId === externalId) return { id, outcome: 'already linked' };
      const remedy =
        kind === 'user' ? '' : ' (see `show`). To replace that tenant, forget it, and adopt again';
      return reject(`the ${noun} is linked to another internal id${remedy}`);
    }
    if (externalId === '') return { id, outcome: 'without external_id' };
    if (RESERVED.test(externalId)) return reject(`${given} is a UUID without or with all bits`);
    if (!isUuid) return reject(`${given} is not a UUID in lower case`);
    if (isFormerId) return reject(`${given} is the internal id of a forgotten user`);
    if (taken.includes(externalId)) return reject(`${given} is the internal id of another ${noun}`);
    return isIdentityProviderUserId(id) ? { id, outcome: 'to adopt' } : reject('the service rejects this id');
  });
}

/** Inserts the links that no concurrent transaction prevents. Returns the ids of their users or organizations. */
async function insertAdoptions(kind: Kind, entries: readonly Adoption[], change: Change): Promise<string[]> {
  const ids = entries.map(({ id }) => id);
  const [table, column] = [raw(KINDS[kind].table), raw(KINDS[kind].column)];
  const isAllowed =
    kind === 'user'
      ? sql`public.forgotten_until(${kind}, provider_id, NULL) IS NULL AND public.forgotten_until(${kind}, id::text, NULL) IS NULL`
      : sql`public.tenant_deletion_due(provider_id) IS NULL`;
  return database().$transaction(async (transaction) => {
    // A deletion in flight ends first, or waits.
    await transaction.$executeRaw`SELECT pg_advisory_xact_lock_shared(public.link_lock(${kind}, id)) FROM unnest(${ids}::text[]) AS id`;
    // The statement has no conflict target, because the internal id can be taken too.
    const inserted = await selectIds(
      sql`INSERT INTO public.${table} (id, ${column})
        SELECT id, provider_id FROM unnest(${entries.map(({ externalId }) => externalId)}::uuid[],
                                           ${ids}::text[]) AS link (id, provider_id)
        WHERE ${isAllowed} ON CONFLICT DO NOTHING RETURNING ${column} AS id`,
      transaction,
    );
    await recordChanges(transaction, kind, 'adopt', change, inserted);
    await restoreLinks(transaction, kind, inserted);
    return inserted;
  }, TRANSACTION);
}

/** Adopts entries, and plans again while a concurrent transaction has linked or forgotten one of them in the meantime. */
async function adoptAll(kind: Kind, entries: readonly Adoption[], change: Change): Promise<LinkResult[]> {
  const adopted = new Set<string>();
  for (;;) {
    const results = await planAdoption(kind, entries);
    const planned = new Set(results.flatMap(({ id, outcome }) => (outcome === 'to adopt' ? [id] : [])));
    const links = entries.filter(({ id }) => planned.has(id));
    const inserted = links.length > 0 ? await insertAdoptions(kind, links, change) : [];
    for (const id of inserted) adopted.add(id);
    // A query after the commit could fail, and a repeated call would count the adopted links as already linked.
    if (inserted.length === links.length)
      return results.map((result) =>
        adopted.has(result.id) ? { id: result.id, outcome: 'adopted' } : result,
      );
  }
}

/**
 * Links each unlinked entry to its `externalId` as the internal id, if this is a UUID in lower case. Never changes a link, so a
 * run can be repeated, also during live traffic. Yields the results of each page after the commit.
 *
 * Throws if the provider or the database rejects a request, or fails for longer than `retryOptions.seconds`.
 */
export async function* adopt(
  kind: Kind,
  pages: AsyncIterable<readonly Adoption[]> | Iterable<readonly Adoption[]>,
  change: Change,
  retryOptions: RetryOptions,
  dryRun = false,
): AsyncGenerator<LinkResult[]> {
  const adoptPage = dryRun ? planAdoption : adoptAll;
  for await (const entries of pages)
    yield await retry(retryOptions, () => retryOnConflict(() => adoptPage(kind, entries, change)));
}

/** Maximum number of updates in flight. */
const PARALLEL = 5;

/**
 * Sets the `external_id` of each linked user to the internal id, if it is empty, a previous id of the same user or the internal
 * id of a forgotten user. Keeps any other value that the list of users has. The API has no conditional update, so a value that
 * was set since then is replaced. Yields the results of up to five users after their updates are recorded. A run can be repeated.
 *
 * Throws the errors of `adopt`. A user whom the provider rejects is a result.
 */
export async function* publish(
  change: Change,
  retryOptions: RetryOptions,
  dryRun = false,
): AsyncGenerator<LinkResult[]> {
  for await (const users of providerUsers(retryOptions)) {
    const links = await retry(retryOptions, () => readEntries('user', users));
    const values = links.map(({ externalId }) => externalId).filter(isIdentityProviderUserId);
    const rows = await retry(retryOptions, () =>
      database().previousId.findMany({ where: { kind: 'user', providerId: { in: values } } }),
    );
    const ownerOf = new Map(rows.map(({ providerId, internalId }) => [providerId, internalId]));
    const publishOne = async (link: (typeof links)[number]) => {
      const { id, externalId, isFormerId, internalId: userId, isForgotten } = link;
      if (userId === undefined) return { id, outcome: isForgotten ? 'forgotten' : 'not linked' };
      if (externalId === userId) return { id, outcome: 'already published' };
      if (externalId !== '' && !isFormerId && ownerOf.get(externalId) !== userId)
        return { id, outcome: 'kept', reason: 'external_id has another value' };
      if (dryRun) return { id, outcome: 'to publish' };
      const status = await retry(retryOptions, async () => (await directory()).setExternalId(id, userId));
      if (status !== undefined)
        return { id, outcome: 'failed', reason: `the identity provider responds with status ${status}` };
      await retry(retryOptions, () => recordChanges(database(), 'user', 'publish', change, [id], userId));
      return { id, outcome: 'published' };
    };
    for (let at = 0; at < links.length; at += PARALLEL)
      yield await Promise.all(links.slice(at, at + PARALLEL).map(publishOne));
  }
}
