import { afterEach, expect, test } from 'vitest';
import * as z from 'zod/mini';
import { lockRow } from '../harness/dependencies/row-lock';
import { allowInserts, DISK_FULL, failInserts, importAsProcess, startInProcess } from '../harness/in-process';
import { SIGNING_SECRET } from '../harness/keys';
import { signatureHeaders } from '../harness/requests';

const { database } = await startInProcess();

const { defineEvent, receiveWebhook, withLogFields } = await importAsProcess(async () => ({
  ...(await import('#lib/webhook')),
  ...(await import('#lib/base/log')),
  ...(await import('#lib/events')),
}));

/** Passes a signed event to `receiveWebhook` and returns the log fields that `receiveWebhook` adds. */
async function receive(type: string, id: string, { messageId = id, handlers = {} } = {}) {
  const payload = JSON.stringify({ type, data: { id } });
  const headers = new Headers(signatureHeaders(payload, { id: `msg_${messageId}` }));
  const fields: Parameters<typeof withLogFields>[0] = {};
  await withLogFields(fields, () => receiveWebhook(payload, headers, [SIGNING_SECRET], handlers));
  return fields;
}
const countRows = async (user: string) => (await database.rowsOf(user)).length;

afterEach(async () => {
  await database.proxy.treat('forward');
  await allowInserts(database);
});

test('The user of an acknowledged user.created event has a row', async () => {
  expect(await receive('user.created', 'user_new')).toMatchObject({ registered: 'created' });
  expect(await countRows('user_new')).toBe(1);
});

test('A user.created event is not acknowledged if the insert fails, and the next delivery of the event creates the row', async () => {
  await failInserts(database, DISK_FULL, 1);
  await expect(receive('user.created', 'user_repeated')).rejects.toThrow();
  expect(await countRows('user_repeated')).toBe(0);
  expect(await receive('user.created', 'user_repeated')).toMatchObject({ registered: 'created' });
  await database.proxy.treat('reset');
  await expect(receive('user.created', 'user_unreachable')).rejects.toThrow();
});

test('If another transaction is inserting the user, a user.created event is acknowledged only after that transaction has committed', async () => {
  const winner = await lockRow(database, 'user_raced');
  let isAcknowledged = false;
  const delivery = receive('user.created', 'user_raced').then((fields) => {
    isAcknowledged = true;
    return fields;
  });
  expect(await winner.waiting(1)).toBe(true);
  expect(isAcknowledged).toBe(false);
  await winner.commit();
  expect(await delivery).toMatchObject({ registered: 'existing' });
  expect(await countRows('user_raced')).toBe(1);
});

test('The log contains at most 64 characters of the message id and at most 64 of the event type', async () => {
  expect(await receive('t'.repeat(65), 'user_1', { messageId: 'm'.repeat(61) })).toEqual({
    messageId: `msg_${'m'.repeat(60)}`,
    eventType: 't'.repeat(64),
  });
});

test('The handler of an event without a timestamp gets the time of the delivery and the whole message id', async () => {
  const contexts: unknown[] = [];
  const handlers = {
    'user.updated': defineEvent(z.object({ id: z.string() }), async (_data, { messageId, occurredAt }) => {
      contexts.push({
        messageId,
        occurredAt: occurredAt % 1_000,
        isRecent: Date.now() - occurredAt < 60_000,
      });
    }),
  };
  const messageId = 'm'.repeat(100);
  await receive('user.updated', 'user_1', { messageId, handlers });
  expect(contexts).toEqual([{ messageId: `msg_${messageId}`, occurredAt: 0, isRecent: true }]);
});
