import { IdentityProviderUserId } from '../api/schemas';
import { type RetryOptions, retry, retryOnConflict } from '../base/retry';
import { findLinks, insertLinks } from '../ids/store';
import type { EventHandlers } from '../webhook';
import { providerUsers } from './paginate';
import { createReplay } from './replay';
import type { LinkResult } from './result';
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

/** Result for one user. Unless the run is a dry run, the link is committed. */
export interface BackfillResult extends LinkResult {
  readonly outcome: 'linked' | 'to link' | 'already linked' | 'forgotten' | 'failed';
  /** Creation time of the user, in milliseconds since 1970. */
  readonly createdAt: number;
}

/**
 * Links many identity-provider users, each exactly once, except forgotten ones. Returns the internal ids of the users that this
 * call linked, by their ids at the provider. Passes database errors through. The call can be repeated.
 */
export async function linkMany(
  identityProviderUserIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  return retryOnConflict(async () => {
    const existing = await findLinks('user', identityProviderUserIds);
    const missing = identityProviderUserIds.filter((id) => !existing.has(id));
    return missing.length === 0 ? new Map() : insertLinks('user', missing);
  });
}

/**
 * Links the unlinked users of the provider, except those that are forgotten or whose ids the service does not accept. Yields the
 * results of each page after the commit, and after `replay` got its users. May run during live traffic, and be repeated.
 *
 * Throws if the provider or the database rejects a request, or fails for longer than `retryOptions.seconds`.
 */
export async function* backfill({
  since,
  dryRun = false,
  replay: handle,
  retryOptions,
}: BackfillOptions): AsyncGenerator<BackfillResult[]> {
  const replay = handle && !dryRun ? createReplay(handle, retryOptions) : undefined;
  for await (const users of providerUsers(retryOptions, since)) {
    const reasons = new Map<string, string>();
    for (const { id } of users) {
      const { error } = IdentityProviderUserId.safeParse(id);
      if (error) reasons.set(id, error.issues[0]?.message ?? '');
    }
    const ids = users.flatMap(({ id }) => (reasons.has(id) ? [] : [id]));
    const inserted = dryRun ? undefined : await retry(retryOptions, () => linkMany(ids));
    const { linked, forgotten } = await retry(retryOptions, () => lookUp('user', ids));
    const failed = replay ? await replay(users.filter(({ id }) => linked.get(id)?.id)) : [];
    for (const { id, reason } of failed) reasons.set(id, reason);
    yield users.map(({ id, createdAt }): BackfillResult => {
      const reason = reasons.get(id);
      if (reason !== undefined) return { id, createdAt, outcome: 'failed', reason };
      if (inserted?.has(id)) return { id, createdAt, outcome: 'linked' };
      if (linked.has(id)) return { id, createdAt, outcome: 'already linked' };
      return { id, createdAt, outcome: forgotten.has(id) ? 'forgotten' : 'to link' };
    });
  }
}
