import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { NextRequest } from 'next/server';
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { log } from '#lib/base/log';
import { defineEvent, type EventContext } from '#lib/events';
import { closeDatabase } from '#lib/storage/database';
import { POST } from '../../app/webhooks/idp/v1/user-created/route';
import { forgetDeletedUser } from '../../events/forget-deleted-user';
import { events as profileEvents } from '../../examples/profiles/events';
import { BUILD_TIME_VALUES } from '../harness/build';
import { createTestDatabase } from '../harness/dependencies/database';
import { SIGNING_SECRET } from '../harness/keys';
import { HOOK, signatureHeaders } from '../harness/requests';

/** Handles the event `test.event`. Writes a row, unless a test replaces the implementation. */
const handle = vi.fn<(data: { id: string }, context: EventContext) => Promise<unknown>>();
const handlers = vi.hoisted(() => ({ events: {} }));
vi.mock('#events', () => handlers);
Object.assign(handlers.events, profileEvents, {
  'test.deleted': forgetDeletedUser,
  'test.event': defineEvent(z.object({ id: z.string() }), (data, context) => handle(data, context)),
});

// A role belongs to the whole PostgreSQL server. The random name avoids a conflict with the role of a killed test run.
const ROLE = `events_${randomBytes(6).toString('hex')}`;
const database = await createTestDatabase();
const { pool, rowsOf } = database;
// Grants the privileges on the service's tables as in docs/deploy.md. `webhook_messages` contains the ids of the handled
// messages, and `webhook_subjects` the time of the newest event of each user. A user.deleted event can add a row to
// `pending_deletions`. The role may not delete profiles.
await pool.query(`
  ${readFileSync('examples/profiles/prisma/migrations/20261125100000_create_profiles/migration.sql', 'utf8')}
  CREATE ROLE ${ROLE} LOGIN PASSWORD 'events';
  GRANT SELECT, INSERT ON users TO ${ROLE};
  GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_messages, webhook_subjects, pending_deletions TO ${ROLE};
  GRANT SELECT, INSERT, UPDATE ON profiles TO ${ROLE}`);
afterAll(async () => {
  await closeDatabase();
  await pool.query(`DROP OWNED BY ${ROLE}; DROP ROLE ${ROLE}`);
  await database.drop();
  vi.unstubAllEnvs();
});
const url = Object.assign(new URL(database.url), { username: ROLE, password: 'events' }).href;
const environment = { ...BUILD_TIME_VALUES, IDP_WEBHOOK_SIGNING_SECRET: SIGNING_SECRET, DATABASE_URL: url };
for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
log.level = 'silent';

beforeEach(async () => {
  handle.mockReset().mockImplementation((data, { transaction }) => write(transaction, data.id));
  await pool.query(
    'TRUNCATE users, previous_ids, profiles, forgotten_users, webhook_messages, webhook_subjects',
  );
});

let messages = 0;
const newId = () => `msg_events_${++messages}`;

async function deliver(type: string, data: unknown, { id = newId(), timestamp = Date.now() } = {}) {
  const body = JSON.stringify({ type, data, object: 'event', timestamp });
  const request = new NextRequest(`http://localhost${HOOK}`, {
    method: 'POST',
    headers: signatureHeaders(body, { id }),
    body,
  });
  const response = await POST(request, { params: Promise.resolve({}) });
  return { status: response.status, body: await response.json() };
}
const acknowledged = (eventType: string) => ({ status: 200, body: { received: true, eventType } });
const failed = { status: 500, body: { message: 'Internal Server Error' } };
const invalid = { status: 400, body: { message: 'Invalid webhook event' } };

/** Writes a row in the transaction of a handler. */
const write = (transaction: EventContext['transaction'], id: string) =>
  transaction.$executeRaw`INSERT INTO users (id, identity_provider_user_id) VALUES (gen_random_uuid(), ${id})`;

const storedMessages = async () =>
  (await pool.query<{ id: string }>('SELECT id FROM webhook_messages')).rows.map(({ id }) => id);
const profiles = async () =>
  (
    await pool.query(
      'SELECT identity_provider_user_id AS id, first_name AS name FROM profiles JOIN users ON user_id = users.id',
    )
  ).rows;
const user = (first_name: string, updated_at: number, id = 'user_ada') => ({
  ...{ id, first_name, updated_at, last_name: null, image_url: 'https://img.example/1' },
  primary_email_address_id: 'idn_2',
  email_addresses: [
    { id: 'idn_1', email_address: 'old@example.com' },
    { id: 'idn_2', email_address: 'ada@example.com' },
  ],
});

describe('A handler of an event', () => {
  test('The writes of a handler and the message id are stored, and another delivery of the message does not run the handler', async () => {
    const id = newId();
    const timestamp = Date.now() - 1_000;
    for (let delivery = 0; delivery < 3; delivery += 1)
      expect(await deliver('test.event', { id: 'row' }, { id, timestamp })).toEqual(
        acknowledged('test.event'),
      );
    expect(handle).toHaveBeenCalledTimes(1);
    expect(handle.mock.calls[0]).toMatchObject([{ id: 'row' }, { messageId: id, occurredAt: timestamp }]);
    expect(await rowsOf('row')).toHaveLength(1);
    expect(await storedMessages()).toEqual([id]);
  });

  test.each(['read committed', 'repeatable read', 'serializable'])(
    'Concurrent deliveries of a message run its handler once at isolation level %s',
    async (level) => {
      await closeDatabase();
      await pool.query(`ALTER ROLE ${ROLE} SET default_transaction_isolation = '${level}'`);
      onTestFinished(async () => {
        await pool.query(`ALTER ROLE ${ROLE} RESET default_transaction_isolation`);
        await closeDatabase();
      });
      handle.mockImplementation(async (data, { transaction }) => {
        await write(transaction, data.id);
        await transaction.$executeRaw`SELECT pg_sleep(0.2)`;
      });
      const id = newId();
      const deliveries = Array.from({ length: 6 }, () => deliver('test.event', { id: 'race' }, { id }));
      for (const response of await Promise.all(deliveries))
        expect(response).toEqual(acknowledged('test.event'));
      expect(await rowsOf('race')).toHaveLength(1);
      expect(handle).toHaveBeenCalledTimes(1);
    },
  );

  test('After an event handler throws, nothing is committed, and the next delivery completes the event', async () => {
    handle.mockImplementationOnce(async (data, { transaction, isNewest }) => {
      await isNewest(data.id);
      await write(transaction, data.id);
      throw new Error('A handler failed');
    });
    const id = newId();
    expect(await deliver('test.event', { id: 'retried' }, { id })).toEqual(failed);
    expect(await rowsOf('retried')).toEqual([]);
    expect(await storedMessages()).toEqual([]);
    expect((await pool.query('SELECT FROM webhook_subjects')).rowCount).toBe(0);
    expect(await deliver('test.event', { id: 'retried' }, { id })).toEqual(acknowledged('test.event'));
    expect(await rowsOf('retried')).toHaveLength(1);
  });

  test.each([1e300, 2 ** 63, 9e15, 1.5, Number.NaN])(
    'An event whose timestamp is not a possible time has the time of its delivery: %s',
    async (timestamp) => {
      const before = Date.now() - 1_000;
      const outcomes: unknown[] = [];
      handle.mockImplementation(async (_data, { occurredAt, isNewest }) => {
        expect(occurredAt).toBeGreaterThanOrEqual(before);
        outcomes.push(await isNewest('subject'));
      });
      expect(await deliver('test.event', { id: 'odd' }, { timestamp })).toEqual(acknowledged('test.event'));
      expect(await deliver('test.event', { id: 'odd' }, { timestamp: Date.now() + 60_000 })).toEqual(
        acknowledged('test.event'),
      );
      expect(outcomes).toEqual([true, true]);
      handle.mockImplementation((_data, { isNewest }) => isNewest('subject', timestamp));
      expect(await deliver('test.event', { id: 'odd' })).toEqual(invalid);
    },
  );

  test('An event whose handler catches a database error gets a 500, because the transaction is rolled back', async () => {
    handle.mockImplementationOnce(async (data, { transaction }) => {
      await write(transaction, data.id);
      await transaction.$executeRaw`SELECT 1 / 0`.catch(() => undefined);
    });
    expect(await deliver('test.event', { id: 'caught' })).toEqual(failed);
    expect(await storedMessages()).toEqual([]);
  });

  test.each([
    [
      'PostgreSQL ends the session',
      () => pool.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [ROLE]),
    ],
    ['the network resets the connection', () => database.proxy.treat('reset')],
  ])(
    'If %s while an event handler runs, nothing is committed, and the next delivery completes the event',
    async (_what, fail) => {
      onTestFinished(() => database.proxy.treat('forward'));
      handle.mockImplementationOnce(async (data, { transaction }) => {
        await write(transaction, data.id);
        await fail();
      });
      const id = newId();
      expect(await deliver('test.event', { id: 'crashed' }, { id })).toEqual(failed);
      await database.proxy.treat('forward');
      expect(await rowsOf('crashed')).toEqual([]);
      expect(await deliver('test.event', { id: 'crashed' }, { id })).toEqual(acknowledged('test.event'));
      expect(await rowsOf('crashed')).toHaveLength(1);
    },
  );

  test('An event whose handler does not settle gets a 500, and the next delivery succeeds', async () => {
    handle.mockImplementationOnce(async (data, { transaction }) => {
      await write(transaction, data.id);
      await new Promise(() => undefined);
    });
    const id = newId();
    expect(await deliver('test.event', { id: 'slow' }, { id })).toEqual(failed);
    expect(await rowsOf('slow')).toEqual([]);
    expect(await deliver('test.event', { id: 'slow' }, { id })).toEqual(acknowledged('test.event'));
    expect(await rowsOf('slow')).toHaveLength(1);
  });

  test('The transaction of a handler has an idle timeout of 8 s, so that PostgreSQL ends the transaction if the process is suspended', async () => {
    let timeout: unknown;
    handle.mockImplementationOnce(async (_data, { transaction }) => {
      timeout =
        await transaction.$queryRaw`SELECT current_setting('idle_in_transaction_session_timeout') AS value`;
    });
    await deliver('test.event', { id: 'frozen' });
    expect(timeout).toEqual([{ value: '8s' }]);
  });

  test.each(['user.banned', 'constructor', '__proto__', 'hasOwnProperty', ''])(
    'An event without a handler is acknowledged without a database statement: %j',
    async (type) => {
      database.takeStatements();
      expect(await deliver(type, { id: 'user_ada' })).toEqual(acknowledged(type));
      expect(database.takeStatements()).toEqual([]);
    },
  );

  test('For each handled message, the service deletes up to ten rows older than 30 days from webhook_messages and up to ten from webhook_subjects', async () => {
    for (const [table, columns, values] of [
      ['webhook_messages', 'id, received_at', ''],
      ['webhook_subjects', 'id, received_at, applied_time', ', 1'],
    ]) {
      await pool.query(`INSERT INTO ${table} (${columns})
        SELECT 'old_' || n, now() - interval '31 days' ${values} FROM generate_series(1, 15) AS n
        UNION ALL SELECT 'new', now() - interval '29 days' ${values}`);
    }
    const old = async () =>
      (
        await pool.query(
          "SELECT FROM webhook_messages WHERE id LIKE 'old%' UNION ALL SELECT FROM webhook_subjects WHERE id LIKE 'old%'",
        )
      ).rowCount;
    await deliver('test.event', { id: 'first' });
    expect(await old()).toBe(10);
    await deliver('test.event', { id: 'second' });
    expect(await old()).toBe(0);
    expect(await storedMessages()).toContain('new');
  });
});

test('The database role of the service may insert a pending deletion and update it after a second deletion event of the user', async () => {
  for (const _attempt of [1, 2])
    expect(await deliver('test.deleted', { id: 'user_ada' })).toEqual(acknowledged('test.deleted'));
  const { rows } = await pool.query('SELECT identity_provider_user_id AS id FROM pending_deletions');
  expect(rows).toEqual([{ id: 'user_ada' }]);
});

describe('Ordering', () => {
  test('An event overwrites the profile of an older event or of an event with the same time, but not the profile of a newer event', async () => {
    await deliver('user.created', user('first', 1_000));
    await deliver('user.updated', user('third', 3_000));
    expect(await deliver('user.updated', user('second', 2_000))).toEqual(acknowledged('user.updated'));
    expect(await profiles()).toEqual([{ id: 'user_ada', name: 'third' }]);
    // Two events with the same time are both applied, because neither is older.
    await deliver('user.updated', user('third again', 3_000));
    expect(await profiles()).toEqual([{ id: 'user_ada', name: 'third again' }]);
  });

  test('After concurrent events of a user, the profile of the newest event is stored', async () => {
    await deliver('user.created', user('0', 0));
    const times = [4, 8, 1, 7, 2, 6, 3, 5];
    const responses = await Promise.all(
      times.map((time) => deliver('user.updated', user(String(time), time))),
    );
    for (const response of responses) expect(response).toEqual(acknowledged('user.updated'));
    expect(await profiles()).toEqual([{ id: 'user_ada', name: '8' }]);
  });

  test('Without a time, isNewest() compares the times of the events', async () => {
    const outcomes: boolean[] = [];
    handle.mockImplementation(async (data, { isNewest }) => outcomes.push(await isNewest(data.id)));
    for (const timestamp of [2_000, 1_000, 3_000])
      await deliver('test.event', { id: 'subject' }, { timestamp });
    expect(outcomes).toEqual([true, false, true]);
  });
});

test('A profile has the names, the image and the primary address of the user. Two users may have one address', async () => {
  for (const id of ['user_ada', 'user_eve']) await deliver('user.created', user(id, 1_000, id));
  const { rows } = await pool.query('SELECT * FROM profiles ORDER BY first_name');
  const both = { email: 'ada@example.com', last_name: null, image_url: 'https://img.example/1' };
  expect(rows).toMatchObject([
    { first_name: 'user_ada', ...both },
    { first_name: 'user_eve', ...both },
  ]);
});

test('The profile of a forgotten user is not stored, and the events are acknowledged, unless the user is linked again', async () => {
  await pool.query(
    `INSERT INTO forgotten_users VALUES (forgotten_user_hash('user_ada'), now(), now() + interval '1 day')`,
  );
  for (const type of ['user.created', 'user.updated'])
    expect(await deliver(type, user('Ada', 1_000))).toEqual(acknowledged(type));
  expect([await profiles(), await rowsOf('user_ada')]).toEqual([[], []]);
  await pool.query(`INSERT INTO users VALUES (gen_random_uuid(), 'user_ada')`);
  await deliver('user.updated', user('Ada', 2_000));
  expect(await profiles()).toHaveLength(1);
});

test('An event with a previous id updates the profile of the user until the id expires', async () => {
  await deliver('user.created', user('first', 1_000));
  await pool.query(
    `INSERT INTO previous_ids SELECT 'user_old', id, 'user_ada', 'run', now() + interval '1 day' FROM users`,
  );
  await deliver('user.updated', user('second', 2_000, 'user_old'));
  await pool.query(`UPDATE previous_ids SET expires_at = now()`);
  const late = await deliver('user.updated', user('third', 3_000, 'user_old'));
  expect([late, await profiles()]).toEqual([
    acknowledged('user.updated'),
    [{ id: 'user_ada', name: 'second' }],
  ]);
});

describe('user.created', () => {
  test('A user.updated event that arrives before user.created gets a 500, and its second delivery after user.created succeeds', async () => {
    const id = newId();
    expect(await deliver('user.updated', user('new', 2_000), { id })).toEqual(failed);
    expect(await deliver('user.created', user('old', 1_000))).toEqual(acknowledged('user.created'));
    expect(await deliver('user.updated', user('new', 2_000), { id })).toEqual(acknowledged('user.updated'));
    expect(await profiles()).toEqual([{ id: 'user_ada', name: 'new' }]);
  });

  test('A failed handler of user.created does not undo the registration of the user', async () => {
    const id = newId();
    await pool.query('ALTER TABLE profiles RENAME TO hidden_profiles');
    expect(await deliver('user.created', user('Ada', 1), { id })).toEqual(failed);
    expect(await rowsOf('user_ada')).toHaveLength(1);
    await pool.query('ALTER TABLE hidden_profiles RENAME TO profiles');
    expect(await deliver('user.created', user('Ada', 1), { id })).toEqual(acknowledged('user.created'));
    expect(await profiles()).toHaveLength(1);
  });

  test('A user.created event whose data does not match the schema gets a 400, but registers the user', async () => {
    expect(await deliver('user.created', { id: 'user_ada' })).toEqual(invalid);
    expect(await rowsOf('user_ada')).toHaveLength(1);
  });

  test.each([{ id: '' }, { id: null }, {}, undefined, 'text'])(
    'A user.created event without an id is acknowledged without a database statement: %j',
    async (data) => {
      database.takeStatements();
      expect(await deliver('user.created', data)).toEqual(acknowledged('user.created'));
      expect(database.takeStatements()).toEqual([]);
    },
  );

  test.each([7, false, {}, 'a\0b', 'u'.repeat(256)])(
    'A user.created event with an id that cannot be registered gets a 400: %j',
    async (id) => {
      database.takeStatements();
      expect(await deliver('user.created', { id })).toEqual(invalid);
      expect(database.takeStatements()).toEqual([]);
    },
  );

  test.each(['[]', '{}', '{"type":7}', 'null', 'text'])(
    'A body that is not an event gets a 400, even if its signature is valid: %s',
    async (body) => {
      const request = new NextRequest(`http://localhost${HOOK}`, {
        method: 'POST',
        headers: signatureHeaders(body),
        body,
      });
      const response = await POST(request, { params: Promise.resolve({}) });
      expect({ status: response.status, body: await response.json() }).toEqual(invalid);
    },
  );
});
