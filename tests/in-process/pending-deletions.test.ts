import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { safeMessage } from '#lib/base/errors';
import { KINDS } from '#lib/ids/store';
import { waitUntil } from '../../dev/system/processes';
import { openTransaction } from '../harness/dependencies/row-lock';
import { importAsProcess, renewKvClient, startInProcess } from '../harness/in-process';
import { SIGNING_SECRET } from '../harness/keys';
import { stubProvider } from '../harness/provider-stub';
import { signatureHeaders } from '../harness/requests';

// An event user.deleted or organization.deleted of the identity provider stores a pending deletion. forgetDue() forgets the users
// or tenants whose deletion is due: it deletes the row and the cached internal id, and stores a hash of the identity-provider id,
// so that no event links the id again.
const { database, kv } = await startInProcess();
const { pool } = database;

/** The service calls this function before each of its statements. */
const { hook } = vi.hoisted(() => ({ hook: { beforeStatement: async () => {} } }));
vi.mock('#lib/storage/database', async (original) => {
  const real = await original<typeof import('#lib/storage/database')>();
  const query = {
    async $allOperations<T>({ args, query: send }: { args: T; query: (args: T) => Promise<unknown> }) {
      await hook.beforeStatement();
      return send(args);
    },
  };
  return { ...real, database: () => real.database().$extends({ query }) };
});

const service = await importAsProcess(async () => ({
  ...(await import('#lib/operator/external-ids')),
  ...(await import('#lib/operator/forget')),
  ...(await import('#lib/operator/pending-deletions')),
  ...(await import('#lib/operator/relink')),
  ...(await import('#lib/ids/store')),
  ...(await import('#lib/register')),
  ...(await import('#lib/webhook')),
  ...(await import('../../events/forget-deleted-user')),
  ...(await import('../../events/forget-deleted-organization')),
}));
const HANDLERS = {
  'user.deleted': service.forgetDeletedUser,
  'organization.deleted': service.forgetDeletedOrganization,
};

let messages = 0;
/** Delivers an event to the webhook. `timestamp` is the time of the event in milliseconds since 1970. */
function deliverData(type: string, data: unknown, timestamp = Date.now()) {
  messages += 1;
  const payload = JSON.stringify({ type, data, timestamp });
  const headers = signatureHeaders(payload, { secret: SIGNING_SECRET, id: `msg_${messages}` });
  return service.receiveWebhook(payload, new Headers(headers), [SIGNING_SECRET], HANDLERS);
}
const deliver = (type: string, id: string, timestamp?: number) =>
  deliverData(type, { id, deleted: true }, timestamp);

const provider = stubProvider();
afterAll(() => provider.restore());

afterEach(async () => {
  hook.beforeStatement = async () => {};
  await kv.proxy.treat('forward');
  await pool.query(`TRUNCATE pending_deletions, users, tenants, forgotten_users,
    unfinished_deletions, webhook_messages CASCADE`);
  Object.assign(provider.entries, { user: [], tenant: [] });
  provider.queries.length = 0;
});

describe.each([
  ['user', 'user.deleted'],
  ['tenant', 'organization.deleted'],
] as const)('Deletion of a %s', (kind, type) => {
  const { column, table } = KINDS[kind];
  const { idsOf } = database.of(kind);
  const register = (id: string, issuedAt?: number) => service.register(kind, id, issuedAt);
  const makeDue = () => pool.query(`UPDATE pending_deletions SET due_at = now() - interval '1 minute'`);
  const pending = async () =>
    (await pool.query('SELECT provider_id AS id FROM pending_deletions ORDER BY 1')).rows.map(({ id }) => id);
  /**
   * Runs the deletions that are due. Returns the result for each id. A run deletes a cache entry twice, with a pause between,
   * because a request in flight may have cached the id. `meanwhile` replaces this pause.
   */
  async function run(meanwhile: () => Promise<unknown> = async () => undefined) {
    const results: Record<string, string> = {};
    for await (const step of service.forgetDue(kind, 30, { by: 'me' }, { seconds: 0 }, meanwhile))
      results[step.providerId] =
        step.result === 'failed' ? `failed: ${safeMessage(step.error)}` : step.result;
    return results;
  }
  /** Links an id and makes its deletion due. Returns the internal id. */
  async function linkAndDelete(id: string): Promise<string | undefined> {
    const registration = await register(id);
    await deliver(type, id);
    await makeDue();
    return registration?.id;
  }

  test('A deletion is due 24 hours after the event arrives, and the row exists until then', async () => {
    await register('id_deleted');
    const before = Date.now();
    await deliver(type, 'id_deleted', 1);
    const dueAt = (await service.deletionDueAt(kind, ['id_deleted']))?.getTime() ?? 0;
    expect(dueAt - 24 * 3_600_000).toBeGreaterThanOrEqual(before - 1_000);
    expect(dueAt - 24 * 3_600_000).toBeLessThanOrEqual(Date.now() + 1_000);
    expect(await run()).toEqual({});
    expect(await idsOf('id_deleted')).toHaveLength(1);
    expect(await service.deletionDueAt(kind, ['id_other'])).toBeNull();
  });

  test.each([undefined, null, {}, { id: null }, { id: '' }])(
    'An event with the data %j has no effect, and its delivery succeeds',
    async (data) => {
      expect(await deliverData(type, data)).toEqual({ received: true, eventType: type });
      expect(await pending()).toEqual([]);
    },
  );

  test('Without a valid response of the provider, nothing is deleted', async () => {
    await linkAndDelete('id_unchecked');
    for (const response of [
      () => Promise.reject(new Error('no network')),
      async () => Response.json({ errors: [] }, { status: 500 }),
      async () => Response.json({ errors: [] }, { status: 401 }),
      async () => Response.json({}),
    ]) {
      provider.failures.push(response);
      await expect(run()).rejects.toThrow(/identity provider/);
      expect(await idsOf('id_unchecked')).toHaveLength(1);
      expect(await pending()).toEqual(['id_unchecked']);
    }
  });

  test('The next run completes a deletion if the cache has failed before or after the row is deleted', async () => {
    await linkAndDelete('id_cached');
    await kv.proxy.treat('refuse');
    expect(await run()).toEqual({ id_cached: 'failed: The cache does not respond. Nothing was deleted.' });
    expect(await idsOf('id_cached')).toHaveLength(1);
    await kv.proxy.treat('forward');
    renewKvClient();
    expect(await run(() => kv.proxy.treat('refuse'))).toEqual({ id_cached: 'uncertain' });
    expect(await idsOf('id_cached')).toEqual([]);
    await kv.proxy.treat('forward');
    renewKvClient();
    expect(await run()).toEqual({ id_cached: 'forgotten' });
    expect(await run()).toEqual({});
  });

  const relinkTo = async (oldId: string, newId: string) => {
    const options = { kind, run: 'run', by: 'me', days: 30, retryOptions: { seconds: 20 } };
    for await (const page of service.relink([{ line: 1, oldId, newId }], options))
      expect(page).toMatchObject([{ outcome: 'moved' }]);
  };
  /** Actions after which the row must exist if they return true. */
  const cancel = () => service.cancelDeletion(kind, ['id_raced']);
  const cancelAndMove = async () => {
    if (!(await cancel())) return false;
    await relinkTo('id_raced', 'id_new');
    return true;
  };
  const restart = async () => {
    await deliver(type, 'id_raced');
    return (await idsOf('id_raced')).length > 0;
  };
  test.each([
    ['An operator cancels', cancel],
    ['An operator cancels, and moves the row to another id,', cancelAndMove],
    ['A new event restarts', restart],
  ])(
    '%s a due deletion before the row is deleted or not at all, whatever statement of the deletion comes next',
    async (_name, act) => {
      const seen = new Set<boolean>();
      let isLast = false;
      for (let at = 1; !isLast; at += 1) {
        const internalId = await linkAndDelete('id_raced');
        isLast = true;
        let statements = 0;
        let acting: Promise<boolean> | undefined;
        hook.beforeStatement = async () => {
          statements += 1;
          if (statements !== at) return;
          isLast = false;
          let isDone = false;
          acting = act().finally(() => {
            isDone = true;
          });
          // The action has ended, or waits for a lock of the deletion.
          await waitUntil(async () => isDone || database.isBlocked(), 10_000);
        };
        const { id_raced: result = 'postponed' } = await run();
        hook.beforeStatement = async () => {};
        const stays = (await acting) ?? false;
        seen.add(stays);
        const { rows } = await pool.query(`SELECT id FROM ${table}`);
        expect({ at, result, rows }).toEqual({
          at,
          result: stays ? 'postponed' : 'forgotten',
          rows: stays ? [{ id: internalId }] : [],
        });
        await pool.query(`DELETE FROM ${table}; DELETE FROM pending_deletions; DELETE FROM forgotten_users`);
      }
    },
  );

  test('An event that arrives during the deletion starts the 24 hours again', async () => {
    await linkAndDelete('id_again');
    expect(await run(() => deliver(type, 'id_again'))).toEqual({ id_again: 'forgotten' });
    expect(await pending()).toEqual(['id_again']);
    expect(await run()).toEqual({});
  });

  test('The next run completes the deletions of an interrupted run, with the internal ids of the deleted rows and one provider request for each 20 ids', async () => {
    const ids = Array.from({ length: 21 }, (_, index) => `id_${String(index).padStart(2, '0')}`);
    await database.of(kind).link(...ids);
    const { rows } = await pool.query(`SELECT id FROM ${table} ORDER BY ${column}`);
    await pool.query(
      `INSERT INTO pending_deletions SELECT $2, unnest($1::text[]), now() - interval '1 minute'`,
      [ids, kind],
    );
    await run(() => Promise.reject(new Error('interrupted')));
    expect((await pool.query(`SELECT FROM ${table}`)).rowCount).toBe(0);
    const receipts = [];
    for await (const step of service.forgetDue(kind, 30, { by: 'me' }, { seconds: 0 }, async () => undefined))
      receipts.push([step.internalId, step.result]);
    expect(receipts).toEqual(rows.map(({ id }) => [id, 'forgotten']));
    expect(provider.queries.map((query) => query.match(/_id=/g)?.length)).toEqual([20, 1, 20, 1]);
    expect(await run()).toEqual({});
  });

  test('A due deletion waits for a move of the row in flight, then keeps the row, and is no longer pending', async () => {
    const internalId = await linkAndDelete('id_moving');
    const moving = await openTransaction(
      database,
      `UPDATE ${table} SET ${column} = 'id_new_id' WHERE ${column} = 'id_moving';
       INSERT INTO previous_ids VALUES ('${kind}', 'id_moving', '${internalId}', 'id_new_id', 'run', now())`,
    );
    const deletion = run();
    expect(await moving.waiting(1)).toBe(true);
    await moving.commit();
    expect([await deletion, await idsOf('id_new_id')]).toEqual([{ id_moving: 'moved' }, [internalId]]);
    expect(await pending()).toEqual([]);
  });

  test('The end of a deletion does not end that of a row with more ids', async () => {
    const ids = `INSERT INTO unfinished_deletions VALUES (default, $1, NULL, '{id_one,id_two}', false)`;
    await pool.query(ids, [kind]);
    await service.finishDeletions(kind, ['id_one']);
    expect(await service.unfinishedIds(kind, ['id_one'])).toHaveLength(2);
  });

  test('If the provider has an id again, a deletion that a new event has postponed stays pending', async () => {
    await linkAndDelete('id_again');
    provider.entries[kind] = [{ id: 'id_again', createdAt: 1 }];
    for await (const { result } of service.forgetDue(kind, 30, { by: 'me' }, { seconds: 0 })) {
      expect(result).toBe('restored');
      await deliver(type, 'id_again');
    }
    expect(await pending()).toEqual(['id_again']);
  });

  const remember = () => service.remember(kind, 'id_back', { by: 'me' });
  const adopt = async () => {
    if (kind === 'user') await pool.query('DELETE FROM forgotten_users');
    const page = [{ id: 'id_back', externalId: randomUUID() }];
    await service.adopt(kind, [page], { by: 'me' }, { seconds: 0 }).next();
  };
  test.each([
    ['remember and a request', async () => void ((await remember()) && (await register('id_back')))],
    ['adopt', adopt],
    [
      'relink',
      async () => {
        await remember();
        await database.of(kind).link('id_old');
        await relinkTo('id_old', 'id_back');
      },
    ],
    ['a request with a later session token', () => register('id_back', Date.now() / 1000 + 60)],
  ])(
    'A row that %s links after a run was killed between the deletion and its end is not deleted by the next runs',
    async (_name, link) => {
      await linkAndDelete('id_back');
      await run(() => Promise.reject(new Error('killed')));
      await link();
      expect(await run()).toEqual({ id_back: 'renewed' });
      expect([await run(), await idsOf('id_back')]).toEqual([{}, [expect.any(String)]]);
    },
  );

  if (kind === 'tenant') return;

  test('If user.created arrives after user.deleted, the user is linked, and is forgotten when the deletion is due. A later event does not link the user again', async () => {
    await deliver(type, 'user_late');
    await deliver('user.created', 'user_late', Date.now() - 60_000);
    expect(await idsOf('user_late')).toHaveLength(1);
    await makeDue();
    expect(await run()).toEqual({ user_late: 'forgotten' });
    await deliver('user.created', 'user_late');
    expect(await idsOf('user_late')).toEqual([]);
  });

  test('If an event without a session token creates a new row for the user during a run, the deletion stays pending, and the next run queries the provider again', async () => {
    await linkAndDelete('user_back');
    const relinked = await run(() => database.link('user_back'));
    expect([relinked, await pending()]).toEqual([{ user_back: 'relinked' }, ['user_back']]);
    provider.entries[kind] = [{ id: 'user_back', createdAt: 1 }];
    expect(await run()).toEqual({ user_back: 'restored' });
    expect(await idsOf('user_back')).toHaveLength(1);
  });
});
