import * as z from 'zod/mini';
import { describeError } from '../base/errors';
import { log } from '../base/log';
import { withTimeout } from '../core/async';
import { database } from '../storage/database';

const Row = z.object({ id: z.guid(), kind: z.string(), userId: z.guid(), attempts: z.int() });
const TakenRow = z.extend(Row, { givenUp: z.boolean() });

/** Work for a user. `userId` is the internal id. `attempts` is 1 for the first attempt. */
type OutboxRow = Readonly<z.infer<typeof Row>>;

/**
 * Handles a row. The idempotency key is the same in each attempt, and no attempt starts later than 23 h after the first one. The
 * signal ends the attempt after 10 s.
 */
export type HandleRow = (row: OutboxRow, idempotencyKey: string, signal: AbortSignal) => Promise<void>;

/** Limits of one call of `handleDueRows`: it takes the last row after 20 s, and a row takes 10 s. */
const MAX_ROWS = 100;
const TAKE_MS = 20_000;
const HANDLE_MS = 10_000;

/**
 * Takes a row that is due, or returns undefined. Concurrent calls take different rows. Postpones the row in the same statement,
 * by a time that doubles from 1 minute to 4 hours. If the row is not deleted in that time, because its work failed or the
 * process was killed, it is due again. Gives up a row 23 h after its first attempt, because other services forget an idempotency
 * key 24 h after its first use. The row then stays in the table and is never due.
 */
async function takeRow(): Promise<z.infer<typeof TakenRow> | undefined> {
  const taken = await database().$queryRaw`
    UPDATE public.outbox SET attempts = attempts + 1, first_attempt_at = coalesce(first_attempt_at, now()),
      due_at = CASE WHEN first_attempt_at + interval '23 hours' < now() THEN NULL
        ELSE now() + 2 ^ least(attempts, 8) * interval '1 minute' END
    WHERE id = (SELECT id FROM public.outbox WHERE due_at <= now() ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, kind, user_id AS "userId", attempts, due_at IS NULL AS "givenUp"`;
  return z.array(TakenRow).parse(taken)[0];
}

async function handleRow(row: OutboxRow, handle: HandleRow): Promise<boolean> {
  try {
    await withTimeout(HANDLE_MS, handle(row, row.id, AbortSignal.timeout(HANDLE_MS)));
    await database().outboxRow.deleteMany({ where: { id: row.id } });
    return true;
  } catch (error) {
    log.warn({ kind: row.kind, attempts: row.attempts, error: describeError(error) }, 'outbox');
    return false;
  }
}

/**
 * Handles up to 100 rows that are due, one after the other, for at most 30 s. Deletes each handled row, and returns their number.
 * A row that fails is logged, and does not block the others. A row that is given up is logged as an error. Passes database errors
 * of `takeRow` through.
 */
export async function handleDueRows(handle: HandleRow): Promise<number> {
  const end = performance.now() + TAKE_MS;
  let handled = 0;
  for (let taken = 0; taken < MAX_ROWS && performance.now() < end; taken += 1) {
    const row = await takeRow();
    if (row === undefined) break;
    if (row.givenUp) log.error({ id: row.id, kind: row.kind }, 'outbox: given up');
    else if (await handleRow(row, handle)) handled += 1;
  }
  return handled;
}
