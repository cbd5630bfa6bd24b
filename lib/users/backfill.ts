import { IdentityProviderUserId } from '../api/schemas';
import { retryOnConflict } from '../concurrency/conflict';
import { type RetryOptions, retry } from '../concurrency/retry';
import { forgottenUntil, insertLinks, linkedUserIds } from '../linking/links';
import type { EventHandlers } from '../webhook';
import { providerUsers } from './paginate';
import { createReplay } from './replay';
import { lookUp } from './rows';

export interface BackfillOptions {
  /** Earliest creation time. By default, all users of the provider are read. */
  readonly since?: Date | undefined;
  /** Counts the users, but does not link them. */
  readonly dryRun?: boolean;
  /** Handler of `user.updated`, which then gets each linked user. A dry run does not call it. */
  readonly replay?: EventHandlers[string] | undefined;
  readonly retryOptions: RetryOptions;
}

/** Result for one page of users. Unless the run is a dry run, the links of these users are committed. */
export interface BackfillStep {
  readonly seen: number;
  readonly linked: number;
  readonly alreadyLinked: number;
  /** Users that are not linked because an operator has deleted ("forgotten") them. */
  readonly forgotten: number;
  /** Users whose ids the service does not accept (docs/contract.md, 2.7), and users for whom the handler threw. */
  readonly failed: readonly { readonly id: string; readonly reason: string }[];
  /** Value of `since` with which a later run continues. */
  readonly continueSince: Date;
}

/** Result of `linkMany`: how many users it linked, and how many users it did not link because they are forgotten. */
interface Linked {
  readonly linked: number;
  readonly forgotten: number;
}

/**
 * Links many identity-provider users, each exactly once. Returns how many this call linked, and how many are forgotten.
 *
 * Runs one statement if all users are already linked. Otherwise, runs a second statement that inserts the missing links. If that
 * statement does not insert all of them, runs a third that counts the forgotten users. If several calls link a user at the same
 * time, the unique key lets only one of them insert the row. Passes database errors through. After an error, the links may
 * already exist, because each statement is committed separately. The call can be repeated. A backfill passes up to 500 ids.
 */
export async function linkMany(identityProviderUserIds: readonly string[]): Promise<Linked> {
  return retryOnConflict(async () => {
    const existing = await linkedUserIds(identityProviderUserIds);
    const missing = identityProviderUserIds.filter((id) => !existing.has(id));
    const linked = missing.length === 0 ? 0 : (await insertLinks(missing)).length;
    return { linked, forgotten: linked === missing.length ? 0 : (await forgottenUntil(missing)).size };
  });
}

/** Returns the numbers that `linkMany` would return. */
async function countUnlinked(ids: readonly string[]): Promise<Linked> {
  const { linked, forgotten } = await lookUp(ids);
  return { linked: ids.length - linked.size - forgotten.size, forgotten: forgotten.size };
}

/**
 * Links the unlinked users of the identity provider, except forgotten users and users whose ids the service does not accept.
 * Yields a step for each page of users, after the rows of this page are committed and `replay` got its users. A backfill may run
 * during live traffic, and may be repeated: it does not link a user twice (lib/linking/links.ts).
 *
 * Throws if the provider or the database rejects a request, or fails for longer than `retryOptions.seconds`.
 */
export async function* backfill({
  since,
  dryRun = false,
  replay: handle,
  retryOptions,
}: BackfillOptions): AsyncGenerator<BackfillStep> {
  const replay = handle && !dryRun ? createReplay(handle, retryOptions) : undefined;
  for await (const users of providerUsers(retryOptions, since)) {
    const parsedUsers = users.map(({ id }) => ({ id, parsed: IdentityProviderUserId.safeParse(id) }));
    const ids = parsedUsers.flatMap(({ parsed }) => (parsed.success ? [parsed.data] : []));
    const failed = parsedUsers.flatMap(({ id, parsed: { error } }) =>
      error === undefined ? [] : [{ id, reason: error.issues[0]?.message ?? '' }],
    );
    const { linked, forgotten } = await retry(retryOptions, () =>
      dryRun ? countUnlinked(ids) : linkMany(ids),
    );
    if (replay) {
      const links = await retry(retryOptions, () => linkedUserIds(ids));
      failed.push(...(await replay(users.filter(({ id }) => links.get(id)))));
    }
    const alreadyLinked = ids.length - linked - forgotten;
    const continueSince = new Date(users.at(-1)?.createdAt ?? 0);
    yield { seen: users.length, linked, alreadyLinked, forgotten, failed, continueSince };
  }
}
