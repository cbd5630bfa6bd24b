import { IdentityProviderUserId } from '../api/schemas';
import { type RetryOptions, retry } from '../concurrency/retry';
import { listUsers, MAX_USERS } from '../idp/backend-api';
import { forgottenUntil } from '../linking/forgotten';
import { type Linked, linkedUserIds, linkMany } from '../linking/links';
import { asTransientError } from './database-error';
import { type Cursor, paginate } from './paginate';

export interface BackfillOptions {
  /** Position where an earlier run ended, or the earliest creation time. By default, all users of the provider are read. */
  readonly from?: Cursor | Date | undefined;
  /** Counts the users, but does not link them. */
  readonly dryRun?: boolean;
  readonly retryOptions: RetryOptions;
}

/** Result for one page of users. Unless the run is a dry run, the links of these users are committed. */
export interface BackfillStep {
  readonly seen: number;
  readonly linked: number;
  readonly alreadyLinked: number;
  /** Users that are not linked because an operator has deleted ("forgotten") them. */
  readonly forgotten: number;
  /** Users whose ids the service does not accept (docs/contract.md, 2.7). */
  readonly failed: readonly { readonly id: string; readonly reason: string }[];
  /** Position from which a later run continues. */
  readonly cursor: Cursor;
}

/** Returns the numbers that `linkMany` would return. */
async function countUnlinked(ids: readonly string[]): Promise<Linked> {
  const existing = await linkedUserIds(ids);
  const missing = ids.filter((id) => !existing.has(id));
  const forgotten = (await forgottenUntil(missing)).size;
  return { linked: missing.length - forgotten, forgotten };
}

/**
 * Links the unlinked users of the identity provider, except forgotten users and users whose ids the service does not accept.
 * Inserts a row with a new internal id for each user (lib/linking/links.ts). Yields a step for each page of users, after the
 * rows for this page are committed. Does not write to the cache of internal ids. A backfill may run during live traffic. It
 * does not miss users that exist during the whole run, and does not link a user twice.
 *
 * Holds one page of 500 users in memory. Throws if the provider or the database rejects a request, or fails for longer than
 * `retryOptions.seconds`. The links of the yielded steps then stay in the database, and a later run can continue from the cursor
 * of the last step.
 */
export async function* backfill({
  from,
  dryRun = false,
  retryOptions,
}: BackfillOptions): AsyncGenerator<BackfillStep> {
  const start = from instanceof Date ? { createdAt: from.getTime(), seen: [] } : from;
  const pages = paginate((page) => retry(retryOptions, () => listUsers(page)), {
    from: start,
    limit: MAX_USERS,
  });
  for await (const { users, cursor } of pages) {
    const parsedUsers = users.map(({ id }) => ({ id, parsed: IdentityProviderUserId.safeParse(id) }));
    const ids = parsedUsers.flatMap(({ parsed }) => (parsed.success ? [parsed.data] : []));
    const failed = parsedUsers.flatMap(({ id, parsed: { error } }) =>
      error === undefined ? [] : [{ id, reason: error.issues[0]?.message ?? '' }],
    );
    const { linked, forgotten } = await retry(retryOptions, () =>
      asTransientError(dryRun ? countUnlinked(ids) : linkMany(ids)),
    );
    const alreadyLinked = ids.length - linked - forgotten;
    yield { seen: users.length, linked, alreadyLinked, forgotten, failed, cursor };
  }
}
