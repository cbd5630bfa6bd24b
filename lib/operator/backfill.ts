import { randomUUID } from 'node:crypto';
import * as z from 'zod/mini';
import { IdentityProviderUserId } from '../api/schemas';
import { describeError } from '../base/errors';
import { type RetryOptions, retry, retryOnConflict } from '../base/retry';
import { findLinks, insertLinks } from '../ids/store';
import type { ProviderEntry } from '../provider-port';
import { pingDatabase } from '../storage/database';
import type { EventHandlers } from '../webhook';
import { providerUsers } from './paginate';
import { type LinkResult, lookUp } from './rows';

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

/** Number of users whose handlers run at the same time. Each handler needs a database connection. */
const CONCURRENCY = 5;
const PING_MS = 4_000;

const Raw = z.object({ updated_at: z.int() });

/**
 * Returns a function that passes users to the handler of `user.updated`, each as a webhook would send it, and returns those whose
 * handler threw twice. The message ids contain an id of this run, so that a handler from `defineEvent` runs again in the next
 * run.
 *
 * Calls a handler again as soon as the database responds, because an outage may have caused the error. Throws if the database
 * fails for longer than `retryOptions.seconds`.
 */
function createReplay(handle: EventHandlers[string], retryOptions: RetryOptions) {
  const run = randomUUID();
  const attempt = async ({ id, raw }: ProviderEntry): Promise<string | undefined> => {
    try {
      await handle(raw, { messageId: `replay:${run}:${id}`, occurredAt: Raw.parse(raw).updated_at });
      return undefined;
    } catch (error) {
      // The message of the error may contain personal data.
      return `The handler of user.updated threw (${describeError(error).name})`;
    }
  };
  const replayOne = async (user: ProviderEntry) => {
    if ((await attempt(user)) === undefined) return [];
    await retry(retryOptions, () => pingDatabase(PING_MS));
    const reason = await attempt(user);
    return reason === undefined ? [] : [{ id: user.id, reason }];
  };
  return async (users: readonly ProviderEntry[]) => {
    const failed: { readonly id: string; readonly reason: string }[] = [];
    for (let at = 0; at < users.length; at += CONCURRENCY)
      failed.push(...(await Promise.all(users.slice(at, at + CONCURRENCY).map(replayOne))).flat());
    return failed;
  };
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
