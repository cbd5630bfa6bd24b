import * as z from 'zod/mini';
import { isIdentityProviderUserId } from '../api/input';
import { InternalUserId } from '../api/schemas';
import { retryOnConflict } from '../base/conflict';
import { type RetryOptions, retry } from '../base/retry';
import { type ProviderUser, setExternalId } from '../idp/backend-api';
import { forgottenUntil } from '../linking/links';
import { database } from '../storage/database';
import { providerUsers } from './paginate';
import type { UserResult } from './result';
import { lookUp } from './rows';

// A team can set the `external_id` of a user at the provider. A request never depends on it.

const Ids = z.array(z.object({ id: z.string() }));

/** The UUIDs without and with all bits (RFC 9562, 5.9 and 5.10), which stand for no id. */
const RESERVED = /^(?:0{8}-(?:0{4}-){3}0{12}|f{8}-(?:f{4}-){3}f{12})$/;

/** Returns true for a UUID in lower case that can be an internal id. */
const isUsable = (id: string): boolean => InternalUserId.safeParse(id).success && !RESERVED.test(id);

/** Reads the links of users. An expired previous id counts as forgotten. */
async function readLinks(users: readonly ProviderUser[]) {
  const ids = users.map(({ id }) => id).filter(isIdentityProviderUserId);
  const externalIds = users.flatMap(({ externalId }) => externalId ?? []).filter(isUsable);
  const { linked, forgotten } = await lookUp(ids);
  const former = await forgottenUntil(externalIds);
  return users.map(({ id, externalId }) => ({
    id,
    externalId: externalId ?? '',
    /** True if `externalId` is the internal id of a forgotten user. */
    isFormerId: former.has(externalId ?? ''),
    userId: linked.get(id) ?? undefined,
    isForgotten: linked.get(id) === null || forgotten.has(id),
  }));
}

/** Returns the results of a dry run. */
async function planAdoption(users: readonly ProviderUser[]): Promise<UserResult[]> {
  const uuids = users.flatMap(({ externalId }) => externalId ?? []).filter(isUsable);
  const found = await database().$queryRaw`SELECT id FROM public.users WHERE id = ANY (${uuids}::uuid[])`;
  const taken = new Set(Ids.parse(found).map(({ id }) => id));
  return (await readLinks(users)).map(({ id, externalId, isFormerId, userId, isForgotten }) => {
    const reject = (reason: string) => ({ id, outcome: 'not adopted', reason });
    const isUuid = uuids.includes(externalId);
    if (isForgotten) return { id, outcome: 'forgotten' };
    if (userId !== undefined)
      return isUuid && userId !== externalId
        ? reject('the user is linked to another internal id')
        : { id, outcome: 'already linked' };
    if (externalId === '') return { id, outcome: 'without external_id' };
    if (RESERVED.test(externalId)) return reject('external_id is a UUID without or with all bits');
    if (!isUuid) return reject('external_id is not a UUID in lower case');
    if (isFormerId) return reject('external_id is the internal id of a forgotten user');
    if (taken.has(externalId)) return reject('external_id is the internal id of another user');
    return isIdentityProviderUserId(id) ? { id, outcome: 'to adopt' } : reject('the service rejects this id');
  });
}

/** Adopts users, and plans again for those that a concurrent transaction has linked or forgotten in the meantime. */
async function adoptAll(users: readonly ProviderUser[]): Promise<UserResult[]> {
  const results = await planAdoption(users);
  const ids = new Set(results.flatMap(({ id, outcome }) => (outcome === 'to adopt' ? [id] : [])));
  const links = users.filter(({ id }) => ids.has(id));
  if (links.length === 0) return results;
  // The statement has no conflict target, because the internal id can be taken too.
  const inserted = await database().$queryRaw`INSERT INTO public.users (id, identity_provider_user_id)
    SELECT id, user_id FROM unnest(${links.map(({ externalId }) => externalId)}::uuid[],
                                   ${links.map(({ id }) => id)}::text[]) AS link (id, user_id)
    WHERE public.forgotten_until(user_id, NULL) IS NULL AND public.forgotten_until(id::text, NULL) IS NULL
    ON CONFLICT DO NOTHING RETURNING identity_provider_user_id AS id`;
  const adopted = new Set(Ids.parse(inserted).map(({ id }) => id));
  const others = adopted.size === ids.size ? [] : await adoptAll(links.filter(({ id }) => !adopted.has(id)));
  return [
    ...results.filter(({ id }) => !ids.has(id)),
    ...[...adopted].map((id) => ({ id, outcome: 'adopted' })),
    ...others,
  ];
}

/**
 * Links each unlinked user of the provider whose `external_id` is a UUID in lower case to this UUID as the internal id. Never
 * changes a link, so a run can be repeated, also during live traffic. Yields the results of each page of users after the commit.
 *
 * Throws if the provider or the database rejects a request, or fails for longer than `retryOptions.seconds`.
 */
export async function* adopt(retryOptions: RetryOptions, dryRun = false): AsyncGenerator<UserResult[]> {
  const adoptPage = dryRun ? planAdoption : adoptAll;
  for await (const users of providerUsers(retryOptions))
    yield await retry(retryOptions, () => retryOnConflict(() => adoptPage(users)));
}

/** Maximum number of updates in flight. */
const PARALLEL = 5;

/**
 * Sets the `external_id` of each linked user to the internal id, if it is empty, a previous id of the same user or the internal id
 * of a forgotten user. Keeps any other value that the list of users has. The API has no conditional update, so a value that was set since then is replaced.
 * Yields the results of up to five users after their updates. A run can be repeated.
 *
 * Throws the errors of `adopt`. A user whom the provider rejects is a result.
 */
export async function* publish(retryOptions: RetryOptions, dryRun = false): AsyncGenerator<UserResult[]> {
  for await (const users of providerUsers(retryOptions)) {
    const links = await retry(retryOptions, () => readLinks(users));
    const values = links.map(({ externalId }) => externalId).filter(isIdentityProviderUserId);
    const rows = await retry(retryOptions, () =>
      database().previousId.findMany({ where: { identityProviderUserId: { in: values } } }),
    );
    const ownerOf = new Map(rows.map((row) => [row.identityProviderUserId, row.userId]));
    const publishOne = async (link: (typeof links)[number]) => {
      const { id, externalId, isFormerId, userId, isForgotten } = link;
      if (userId === undefined) return { id, outcome: isForgotten ? 'forgotten' : 'not linked' };
      if (externalId === userId) return { id, outcome: 'already published' };
      if (externalId !== '' && !isFormerId && ownerOf.get(externalId) !== userId)
        return { id, outcome: 'kept', reason: 'external_id has another value' };
      if (dryRun) return { id, outcome: 'to publish' };
      const status = await retry(retryOptions, () => setExternalId(id, userId));
      if (status === undefined) return { id, outcome: 'published' };
      return { id, outcome: 'failed', reason: `the identity provider responds with status ${status}` };
    };
    for (let at = 0; at < links.length; at += PARALLEL)
      yield await Promise.all(links.slice(at, at + PARALLEL).map(publishOne));
  }
}
