import * as z from 'zod/mini';
import { withTimeout } from './concurrency/with-timeout';
import { HttpError } from './http/error';
import { retryOnConflict } from './linking/links';
import type { Transaction } from './storage/database';

/** Public message of the 400 for a verified body that is not a valid event. */
export const INVALID_EVENT = 'Invalid webhook event';

/** A delivery with a verified signature. */
export interface Delivery {
  /** The message id, which is the same in each delivery of a message. */
  readonly messageId: string;
  /** Time of the event in milliseconds since 1970. */
  readonly occurredAt: number;
}

/** The delivery that a handler processes, and the transaction of the handler. */
export interface EventContext extends Delivery {
  /** The transaction that stores the message id. The handler's writes are therefore committed only together with that id. */
  readonly transaction: Transaction;
  /**
   * Returns false if a handler has already applied a newer event to `subject`. Otherwise, stores `time` as the time of the
   * newest event of `subject` and returns true. A handler that gets false must not write, because its event is outdated. Events
   * may arrive in any order.
   *
   * `subject` is an id that the handler chooses, such as a user id. `time` is in milliseconds since 1970, such as
   * `data.updated_at`. The default is the time of the event. If another open transaction has called `isNewest` for the same
   * subject, this call waits until that transaction ends. The stored time is kept for 30 days after the last applied event.
   */
  isNewest(subject: string, time?: number): Promise<boolean>;
}

/** Parses the data of an event. Returns the function that runs in the transaction of the event. */
export type EventHandler = (data: unknown) => (context: EventContext) => Promise<unknown>;

/** Handlers by event type. */
export type EventHandlers = Readonly<Record<string, EventHandler>>;

/**
 * Defines the handler of an event whose `data` matches a schema. A delivery whose `data` does not match gets a 400, as an
 * invalid `user.created` event does. The identity provider shows the failed delivery and repeats it.
 *
 * The handler runs in a transaction that also stores the message id. The handler does not run for a message whose id is stored.
 * If the handler throws, nothing is committed, and the sender repeats the delivery. The handler must be idempotent, because the
 * stored message ids are deleted after 30 days. If a message is sent again after that time, the handler runs again. The handler
 * must not call other services. A repeated transaction or delivery would repeat the call, and a slow call could exceed the 4 s
 * limit of the transaction.
 */
export function defineEvent<T>(
  schema: z.core.$ZodType<T>,
  handle: (data: T, context: EventContext) => Promise<unknown>,
): EventHandler {
  return (data) => {
    const parsed = z.safeParse(schema, data);
    if (!parsed.success) throw new HttpError(400, INVALID_EVENT);
    return (context) => handle(parsed.data, context);
  };
}

/**
 * Time limits in milliseconds: `maxWait` for a connection, `timeout` for one transaction, and `DEADLINE_MS` for all attempts of
 * the transaction. The sender stops waiting after 15 s. A delivery may run a registration (at most 8 s, lib/register.ts) before
 * the handler. The sum of those 8 s and `DEADLINE_MS` must therefore be below 15 s.
 */
const TRANSACTION = { maxWait: 2_000, timeout: 4_000 };
const DEADLINE_MS = 6_000;

/**
 * Stores the id of a message. Returns false if it was already stored. Waits while another transaction stores the same id.
 *
 * This process may stop in the middle of the transaction, for example because the platform suspends a serverless function. Each
 * later delivery of the message then waits for the open transaction until the delivery times out. PostgreSQL therefore ends a
 * transaction that has been idle for 8 s (`idle_in_transaction_session_timeout`).
 */
async function storeMessage(transaction: Transaction, messageId: string): Promise<boolean> {
  const stored = await transaction.$executeRaw`
    WITH settings AS (SELECT set_config('idle_in_transaction_session_timeout', '8000', true))
    INSERT INTO public.webhook_messages (id) SELECT ${messageId}::text FROM settings
    ON CONFLICT (id) DO NOTHING`;
  return stored === 1;
}

/** Stores the time of the newest event of a subject. Returns false only if the stored time is newer. */
async function storeSubject(transaction: Transaction, subject: string, time: number): Promise<boolean> {
  const stored = await transaction.$executeRaw`
    INSERT INTO public.webhook_subjects AS stored (id, applied_time) VALUES (${subject}, ${BigInt(Math.trunc(time))})
    ON CONFLICT (id) DO UPDATE SET applied_time = EXCLUDED.applied_time, received_at = EXCLUDED.received_at
    WHERE stored.applied_time <= EXCLUDED.applied_time`;
  return stored === 1;
}

/**
 * Deletes rows that are older than 30 days, up to ten from each table. A message usually adds only one row to each table, so
 * the tables stay small. Skips rows that another transaction is deleting.
 */
const deleteExpired = (transaction: Transaction) => transaction.$executeRaw`
  WITH messages AS (
    DELETE FROM public.webhook_messages WHERE id IN (
      SELECT id FROM public.webhook_messages WHERE received_at < now() - interval '30 days'
      ORDER BY received_at LIMIT 10 FOR UPDATE SKIP LOCKED))
  DELETE FROM public.webhook_subjects WHERE id IN (
    SELECT id FROM public.webhook_subjects WHERE received_at < now() - interval '30 days'
    ORDER BY received_at LIMIT 10 FOR UPDATE SKIP LOCKED)`;

/**
 * Runs the work of a handler and stores the message id in one transaction. Returns `repeated` without running the work if
 * the message id is already stored. Concurrent deliveries of a message run the work once.
 *
 * Repeats a transaction that lost a race against another transaction. Rejects with the error of the work or the database, or
 * after 6 s. After a rejection, the transaction may still be committed, because the timeout does not cancel it and a lost
 * connection can hide a successful COMMIT. The next delivery then returns `repeated`. If the transaction is not committed, none
 * of its writes remains, and the next delivery runs the work again.
 */
export async function handleEvent(
  work: (context: EventContext) => Promise<unknown>,
  delivery: Delivery,
): Promise<'completed' | 'repeated'> {
  const { database } = await import('./storage/database');
  const run = async (transaction: Transaction) => {
    if (!(await storeMessage(transaction, delivery.messageId))) return 'repeated';
    await work({
      ...delivery,
      transaction,
      isNewest: (subject, time = delivery.occurredAt) => storeSubject(transaction, subject, time),
    });
    // If the work caught a database error, PostgreSQL has aborted the transaction, and this statement fails. Without a
    // statement here, COMMIT would roll back and report no error.
    await deleteExpired(transaction);
    return 'completed';
  };
  return withTimeout(
    DEADLINE_MS,
    retryOnConflict(() => database().$transaction(run, TRANSACTION)),
  );
}
