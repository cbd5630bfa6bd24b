import { Webhook } from 'svix';
import { afterEach, beforeEach, expect, test } from 'vitest';
import * as z from 'zod/mini';
import { lockRow } from '../harness/dependencies/row-lock';
import { allowInserts, DISK_FULL, failInserts, importAsProcess, startInProcess } from '../harness/in-process';
import { SIGNING_SECRET } from '../harness/keys';

const { database } = await startInProcess();

/** Imports the modules of lib/ as a new process of the service does. */
const loadProcess = () =>
  importAsProcess(async () => {
    const [webhook, log, { defineEvent }] = await Promise.all([
      import('#lib/webhook'),
      import('#lib/log'),
      import('#lib/events'),
    ]);
    /** Passes a signed event to `receiveWebhook` and returns the log fields that `receiveWebhook` adds. */
    const receive = async (type: string, id: string, { messageId = id, handlers = {} } = {}) => {
      const payload = JSON.stringify({ type, data: { id } });
      const now = new Date();
      const headers = new Headers({
        'svix-id': `msg_${messageId}`,
        'svix-timestamp': String(Math.floor(now.getTime() / 1000)),
        'svix-signature': new Webhook(SIGNING_SECRET).sign(`msg_${messageId}`, now, payload),
      });
      const fields: Parameters<typeof log.withLogFields>[0] = {};
      await log.withLogFields(fields, () =>
        webhook.receiveWebhook(payload, headers, [SIGNING_SECRET], handlers),
      );
      return fields;
    };
    return { receive, defineEvent };
  });

const { receive, defineEvent } = await loadProcess();
const elsewhere = await loadProcess();
const countRows = async (user: string) => (await database.rowsOf(user)).length;

beforeEach(() => {
  database.takeStatements();
});
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

test('20 concurrent deliveries of user.created to two processes create one row, and only one delivery reports that it created the row', async () => {
  const deliveries = Array.from({ length: 20 }, (_, index) =>
    (index % 2 === 0 ? receive : elsewhere.receive)('user.created', 'user_many'),
  );
  const registered = (await Promise.all(deliveries)).map((fields) => fields.registered);
  expect(registered.filter((outcome) => outcome === 'created')).toHaveLength(1);
  expect(await countRows('user_many')).toBe(1);
});

test('An event without a handler causes no database statement unless its type is user.created', async () => {
  await receive('user.updated', 'user_updated');
  expect([await countRows('user_updated'), database.takeStatements()]).toEqual([0, []]);
});

const User = z.object({ id: z.string() });

test('A handler runs once for concurrent deliveries of a message to two processes', async () => {
  let runs = 0;
  const deliverTo = (process: typeof elsewhere) => {
    const handlers = {
      'user.updated': process.defineEvent(User, async () => {
        runs += 1;
      }),
    };
    return process.receive('user.updated', 'user_h', { handlers });
  };
  const one = { receive, defineEvent };
  const outcomes = await Promise.all([one, elsewhere, one].map(deliverTo));
  expect(runs).toBe(1);
  expect(outcomes.map(({ handler }) => handler).sort()).toEqual(['completed', 'repeated', 'repeated']);
});

test('If the handler of user.created fails, the row of the user remains, and the next delivery of the event runs the handler again', async () => {
  let runs = 0;
  const handlers = {
    'user.created': defineEvent(User, async ({ id }, { isNewest }) => {
      runs += 1;
      await isNewest(id);
      if (runs === 1) throw new Error('failed by a test');
    }),
  };
  await expect(receive('user.created', 'user_failed', { handlers })).rejects.toThrow('failed by a test');
  expect(await countRows('user_failed')).toBe(1);
  const { rows } = await database.pool.query(`SELECT FROM webhook_subjects WHERE id = 'user_failed'`);
  expect(rows).toEqual([]);
  expect(await receive('user.created', 'user_failed', { handlers })).toMatchObject({
    registered: 'existing',
    handler: 'completed',
  });
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
    'user.updated': defineEvent(User, async (_data, { messageId, occurredAt }) => {
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
