import { IdentityProviderUserId } from '../api/schemas';
import { type RetryOptions, retry } from '../concurrency/retry';
import { listUsers, MAX_USERS } from '../idp/backend-api';
import { linkedUserIds, linkMany } from '../linking/links';
import { asTransientError } from './database-error';
import { type Cursor, paginate } from './paginate';

export interface BackfillOptions {
  /** Position where an earlier run ended, or creation time of the first user. Default: the first user of all. */
  readonly from?: Cursor | Date | undefined;
  /** Counts, and links nobody. */
  readonly dryRun?: boolean;
  readonly patience: RetryOptions;
}

/** What became of some users who follow each other; their rows are committed. */
export interface BackfillStep {
  readonly seen: number;
  readonly linked: number;
  readonly alreadyLinked: number;
  /** Those whose ids the service would not take (contract 2.7), and why. */
  readonly failed: readonly { readonly id: string; readonly why: string }[];
  /** Position from which a later run continues. */
  readonly cursor: Cursor;
}

/**
 * Links every user of the identity provider who is not linked, beside live traffic: nobody who is there all the time is
 * missed, and nobody is linked twice. Each step is told once its rows are committed. Nothing is cached.
 *
 * Holds one page of 500 users, whatever there are. Ends with an error when provider or database have failed for as long
 * as `patience` says, or refuse; what was told before stays done.
 */
export async function* backfill({
  from,
  dryRun = false,
  patience,
}: BackfillOptions): AsyncGenerator<BackfillStep> {
  const start = from instanceof Date ? { createdAt: from.getTime(), seen: [] } : from;
  const pages = paginate((page) => retry(patience, () => listUsers(page)), {
    from: start,
    limit: MAX_USERS,
  });
  for await (const { users, cursor } of pages) {
    const judged = users.map(({ id }) => ({ id, parsed: IdentityProviderUserId.safeParse(id) }));
    const ids = judged.flatMap(({ parsed }) => (parsed.success ? [parsed.data] : []));
    const failed = judged.flatMap(({ id, parsed: { error } }) =>
      error === undefined ? [] : [{ id, why: error.issues[0]?.message ?? '' }],
    );
    const linked = await retry(patience, () =>
      asTransientError(dryRun ? linkedUserIds(ids).then((known) => ids.length - known.size) : linkMany(ids)),
    );
    yield { seen: users.length, linked, alreadyLinked: ids.length - linked, failed, cursor };
  }
}
