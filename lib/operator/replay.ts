import { randomUUID } from 'node:crypto';
import * as z from 'zod/mini';
import { describeError } from '../base/errors';
import { type RetryOptions, retry } from '../base/retry';
import type { ProviderEntry } from '../provider-port';
import { pingDatabase } from '../storage/database';
import type { EventHandlers } from '../webhook';

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
export function createReplay(handle: EventHandlers[string], retryOptions: RetryOptions) {
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
