import { describe, expect, test } from 'vitest';
import type { Kind } from '#lib/core/ports';
import { KINDS } from '#lib/ids/store';
import { openTransaction, pauseInserts } from '../harness/dependencies/row-lock';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { SIGNING_SECRET } from '../harness/keys';
import { signatureHeaders } from '../harness/requests';

// A user is linked if `users` has a row with the user's id at the identity provider and the user's internal id. A webhook, a
// register call, a guard (the session check of a route) or a backfill (a command that links all users) can link a user. An
// operator can forget a user. The row in `users` is then deleted, and `forgotten_users` gets a row. While the row in
// `forgotten_users` exists, no event and no older session token links the user again. In this file, a token is newer than a
// deletion if it was issued more than 5 s after the deletion, and older otherwise.
const { database, kv } = await startInProcess();

/** Imports the modules of lib/ as a new process of the service does. Returns the ways to link or forget a user. */
const loadProcess = () =>
  importAsProcess(async () => {
    const service = {
      ...(await import('#lib/base/log')),
      ...(await import('#lib/http/request-log')),
      ...(await import('#lib/webhook')),
      ...(await import('#lib/register')),
      ...(await import('#lib/ids/store')),
      ...(await import('#lib/operator/backfill')),
      ...(await import('#lib/operator/delete-link')),
      ...(await import('#lib/operator/forget')),
      resolveUser: (await import('#lib/link')).link.resolveUser,
      resolveId: (await import('#lib/link')).link.resolve,
    };
    const withFields = async <T>(work: () => Promise<T>) => {
      const fields: Parameters<typeof service.withLogFields>[0] = {};
      return { fields, result: await service.withLogFields(fields, work) };
    };
    let handled = 0;
    const handlers = { 'user.created': async () => (handled += 1) };
    return {
      ...service,
      register: (id: string, kind: Kind = 'user') => service.register(kind, id),
      /** Calls the guard with a token that was issued at this time (seconds since 1970). Returns its log fields. */
      guard: async (name: string, issuedAt: number) =>
        (await withFields(() => service.resolveUser({ user: name, issuedAt }))).fields,
      resolve: async (id: string, issuedAt?: number, kind: Kind = 'user') =>
        (await service.resolveId(kind, id, issuedAt))?.id,
      forget: (name: string) => service.forget('user', name, 30, { by: 'me' }, async () => undefined),
      /** Delivers a `user.created` event. Returns the result, the log field `registered` and the number of handler calls. */
      deliver: async (name: string) => {
        const payload = JSON.stringify({ type: 'user.created', data: { id: name } });
        const signature = signatureHeaders(payload, { secret: SIGNING_SECRET, id: `msg_${name}` });
        handled = 0;
        const receive = () =>
          service.receiveWebhook(payload, new Headers(signature), [SIGNING_SECRET], handlers);
        const { fields, result } = await withFields(receive);
        return { ...result, registered: fields.registered, handled };
      },
    };
  });

const one = await loadProcess();
const other = await loadProcess();

/** Issue time of a session token that is older than every deletion. */
const LONG_AGO = 0;
/** Returns the issue time of a session token that is newer than every deletion so far. */
const later = () => Date.now() / 1000 + 60;

test('A webhook, a register call, a guard with an older token and a backfill link a forgotten user only after the row in `forgotten_users` has expired', async () => {
  await one.guard('user_1', LONG_AGO);
  expect(await one.forget('user_1')).toBe('forgotten');
  const acknowledgment = { received: true, eventType: 'user.created', registered: 'forgotten', handled: 0 };
  for (const process of [one, other]) {
    expect(await process.deliver('user_1')).toEqual(acknowledgment);
    expect(await process.register('user_1')).toEqual({ state: 'forgotten' });
    expect(await process.guard('user_1', LONG_AGO)).toEqual({ reason: 'forgotten' });
    expect([...(await process.linkMany(['user_1', 'user_2'])).keys()]).not.toContain('user_1');
  }
  expect([await database.idsOf('user_1'), await kv.cachedId('user_1')]).toEqual([[], null]);
  const ways = [
    one.deliver,
    one.register,
    (user: string) => one.guard(user, LONG_AGO),
    (user: string) => one.linkMany([user]),
  ];
  for (const [index, link] of ways.entries()) {
    await one.forget(`user_expired_${index}`);
    await database.pool.query('UPDATE forgotten_users SET expires_at = now()');
    await link(`user_expired_${index}`);
    expect(await database.idsOf(`user_expired_${index}`)).toHaveLength(1);
  }
});

test('A token links a forgotten user if the token was issued more than 5 s after the deletion, and later calls find the row', async () => {
  await one.forget('user_back');
  const { rows } = await database.pool.query(
    `SELECT extract(epoch FROM forgotten_at)::float8 AS at FROM forgotten_users WHERE id_hash = forgotten_hash('user', 'user_back')`,
  );
  const { at } = rows[0];
  expect(await one.guard('user_back', at + 5)).toEqual({ reason: 'forgotten' });
  expect(await one.guard('user_back', at + 5.001)).toEqual({ cache: 'miss', caller: 'created' });
  const [userId] = await database.idsOf('user_back');
  expect(await kv.cachedId('user_back')).toBe(userId);
  expect(await one.deliver('user_back')).toMatchObject({ registered: 'existing' });
  expect(await other.register('user_back')).toEqual({ state: 'linked', id: userId, created: false });
  expect(await other.guard('user_back', LONG_AGO)).toEqual({ cache: 'hit' });
});

test('A session token without an issue time does not link a forgotten user', async () => {
  await one.forget('user_timeless');
  expect(await one.resolve('user_timeless', undefined)).toBeUndefined();
});

test('Only the guard with a newer token creates the row if several calls for a forgotten user are concurrent', async () => {
  for (let round = 0; round < 10; round += 1) {
    const user = `user_concurrent_${round}`;
    await one.forget(user);
    const [old, guarded, registered, delivered] = await Promise.all([
      one.guard(user, LONG_AGO),
      one.guard(user, later()),
      one.register(user),
      other.deliver(user),
    ]);
    expect(guarded.caller).toBe('created');
    expect([undefined, false]).toContain(registered?.created);
    expect(['forgotten', 'existing']).toContain(delivered.registered);
    expect([undefined, 'existing']).toContain(old.caller);
    expect(await database.idsOf(user)).toHaveLength(1);
  }
});

describe.each(['user', 'tenant'] as const)('Deletion of a %s', (kind) => {
  const { table } = KINDS[kind];
  const { idsOf } = database.of(kind);

  test('An insert that starts during the deletion of an id waits for the deletion and inserts no row', async () => {
    const id = await one.resolve('deleting', LONG_AGO, kind);
    await database.pool.query(`CREATE TABLE children (id uuid REFERENCES ${table} (id) ON DELETE CASCADE)`);
    await database.pool.query('INSERT INTO children VALUES ($1)', [id]);
    const children = await openTransaction(database, 'SELECT FROM children FOR UPDATE');
    const deletion = one.deleteLink(kind, 'deleting', 30, { by: 'me' });
    expect(await children.waiting(1)).toBe(true);
    const inserted = other.insertLinks(kind, ['deleting', 'of_same_statement']);
    expect(await database.areBlocked(2)).toBe(true);
    await children.release();
    expect([await deletion, (await inserted).size]).toEqual([['deleting'], 1]);
    await database.pool.query('DROP TABLE children');
    expect(await idsOf('deleting')).toEqual([]);
    expect(await idsOf('of_same_statement')).toHaveLength(1);
  });

  test('A deletion that starts during the insert of an id waits for the insert and deletes the row', async () => {
    const { resume } = await pauseInserts(database, kind);
    const registration = one.register('inserting', kind);
    expect(await database.areBlocked(1)).toBe(true);
    const deletion = other.deleteLink(kind, 'inserting', 30, { by: 'me' });
    expect(await database.areBlocked(2)).toBe(true);
    await resume();
    expect([await registration, await deletion]).toMatchObject([{ created: true }, ['inserting']]);
    expect(await idsOf('inserting')).toEqual([]);
    expect(await one.register('inserting', kind)).toEqual({ state: 'forgotten' });
  });
});
