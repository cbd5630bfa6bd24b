import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { startDedicatedPostgres } from '../harness/dependencies/dedicated-postgres';
import { lockInserts, lockRow } from '../harness/dependencies/row-lock';
import { deliver, me, type ParsedResponse, register, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const ROLE = 'service_role';
const POOL_CONNECTIONS = 10;

const postgres = stopAfterAll(await startDedicatedPostgres());
const service = stopAfterAll(
  await startTestService({
    server: postgres,
    // The service uses a separate role without superuser rights, because connection limits do not apply to a superuser.
    async databaseUrl(database) {
      await database.pool.query(`CREATE ROLE ${ROLE} LOGIN PASSWORD 'password-of-the-role'`);
      await database.pool.query(`GRANT SELECT, INSERT ON users TO ${ROLE}`);
      const url = new URL(database.url);
      url.username = ROLE;
      url.password = 'password-of-the-role';
      return url.href;
    },
  }),
);

const administer = (statement: string) => service.database.pool.query(statement);
const endConnections = () =>
  administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${ROLE}'`);
const token = (id: string) => tokenFor(service.idp, id);
const { rowsOf } = service.database;

const recovers = () =>
  expect
    .poll(async () => (await me(service.url, token(`user_after_${Date.now()}`))).status, {
      message: 'the service recovers without a restart',
    })
    .toBe(200);

afterEach(async () => {
  await service.database.proxy.treat('forward');
  await recovers();
});

const internalError = { status: 500, body: { message: 'Internal Server Error' } };
const statusAndBody = ({ status, body }: ParsedResponse) => ({ status, body });

/** Makes the identity provider send an event. Resolves with the id of the delivery once its first attempt has failed. */
async function failedDelivery(id: string): Promise<string> {
  const delivery = service.idp.webhooks.send('user.created', { id });
  const attempts = () => service.idp.store.deliveries.get(delivery.id)?.attempts ?? [];
  await expect.poll(() => attempts().length > 0).toBe(true);
  expect(attempts()[0]?.status).toBe(500);
  return delivery.id;
}

describe('A failing database', () => {
  const transport = (treatment: 'refuse' | 'reset' | 'black-hole') => ({
    fail: () => service.database.proxy.treat(treatment),
    heal: () => service.database.proxy.treat('forward'),
  });

  test.each<[string, () => { fail(): Promise<unknown>; heal(): Promise<unknown> }]>([
    ['refuses connections', () => transport('refuse')],
    ['resets connections', () => transport('reset')],
    ['drops all bytes', () => transport('black-hole')],
    ['was shut down', () => ({ fail: postgres.halt, heal: postgres.resume })],
    [
      'has no free connection',
      () => ({
        async fail() {
          await administer(`ALTER ROLE ${ROLE} CONNECTION LIMIT 0`);
          await endConnections();
        },
        heal: () => administer(`ALTER ROLE ${ROLE} CONNECTION LIMIT -1`),
      }),
    ],
  ])(
    'If the database %s, /users/v1/me still serves cached users, requests that need the database get a 500, and events are delivered after the outage',
    async (what, outage) => {
      const { fail, heal } = outage();
      const id = (kind: string) => `user_${kind}_${what.replaceAll(' ', '_')}`;
      const cached = await me(service.url, token(id('cached')));
      await deliver(service.url, userCreated(id('uncached')));
      await fail();
      const [served, ...others] = await Promise.all([
        me(service.url, token(id('cached'))),
        me(service.url, token(id('uncached'))),
        me(service.url, token(id('new'))),
        register(service.url, token(id('cached')), { identityProviderUserId: id('registered') }),
        deliver(service.url, userCreated(id('announced'))),
      ]);
      expect(statusAndBody(served)).toEqual({ status: 200, body: cached.body });
      expect(others.map(statusAndBody)).toEqual(Array(4).fill(internalError));
      const event = await failedDelivery(id('event'));
      await heal();
      expect((await service.idp.webhooks.settled(event)).status).toBe('delivered');
      expect(await rowsOf(id('event'))).toHaveLength(1);
      await recovers();
      expect((await me(service.url, token(id('uncached')))).status).toBe(200);
    },
  );

  test('The service recovers from a database that stops responding to queries on all connections', async () => {
    const cached = await me(service.url, token('user_dark_cached'));
    const row = await lockInserts(service.database);
    const inFlight = [
      me(service.url, token('user_dark_guard')),
      register(service.url, token('user_dark_cached'), { identityProviderUserId: 'user_dark_register' }),
      ...Array.from({ length: 12 }, (_, index) => deliver(service.url, userCreated(`user_dark_${index}`))),
    ];
    expect(await row.waiting(POOL_CONNECTIONS)).toBe(true);
    await service.database.proxy.treat('black-hole');
    expect(statusAndBody(await me(service.url, token('user_dark_cached')))).toEqual({
      status: 200,
      body: cached.body,
    });
    const responses = await Promise.all(inFlight);
    expect(responses.map(statusAndBody)).toEqual(Array(14).fill(internalError));
    await row.release();
    await service.database.proxy.treat('forward');
    await recovers();
    expect((await deliver(service.url, userCreated('user_dark_0'))).status).toBe(200);
    expect(await rowsOf('user_dark_0')).toHaveLength(1);
  });
});

test.each([1, 3, 6])(
  'Requests succeed if the database is suspended and responds after %i s',
  async (seconds) => {
    const id = (kind: string) => `user_${kind}_${seconds}`;
    await deliver(service.url, userCreated(id('caller')));
    await service.database.proxy.treat('hold');
    const woken = pause(seconds * 1_000).then(() => service.database.proxy.treat('forward'));
    const responses = await Promise.all([
      me(service.url, token(id('caller'))),
      me(service.url, token(id('new'))),
      register(service.url, token(id('caller')), { identityProviderUserId: id('registered') }),
      deliver(service.url, userCreated(id('announced'))),
    ]);
    await woken;
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 201, 200]);
    for (const kind of ['caller', 'new', 'registered', 'announced'])
      expect(await rowsOf(id(kind)), kind).toHaveLength(1);
  },
);

test('A registration that waits first for a connection and then for a row lock fails at its deadline of 8 s', async () => {
  const row = await lockRow(service.database, 'user_late');
  const timeouts = () => service.linesWith('Timed out').length;
  const before = timeouts();
  await service.database.proxy.treat('hold');
  const late = deliver(service.url, userCreated('user_late'));
  // The database accepts no connection for 6 s. The insert starts after that, and the row lock blocks it. The query timeout of
  // 3 s would end the insert 9 s after the delivery, but the deadline ends the registration after 8 s.
  await pause(6_000);
  await service.database.proxy.treat('forward');
  expect(statusAndBody(await late)).toEqual(internalError);
  await row.release();
  await expect.poll(timeouts, { message: 'the deadline ended the registration' }).toBe(before + 1);
});

test('If PostgreSQL closes the connections, a request with a running query gets a 500. Requests succeed once the service has noticed the loss', async () => {
  const row = await lockRow(service.database, 'user_ended');
  const inFlight = me(service.url, token('user_ended'));
  expect(await row.waiting(1)).toBe(true);
  await endConnections();
  expect(statusAndBody(await inFlight)).toEqual(internalError);
  await row.release();
  expect((await me(service.url, token('user_ended'))).status).toBe(200);
  const lost = () => service.linesWith('idle database connection lost').length;
  const before = lost();
  await endConnections();
  await expect.poll(() => lost() > before).toBe(true);
  expect((await me(service.url, token('user_ended_idle'))).status).toBe(200);
});

test('While the database is read-only, /users/v1/me still serves users with a row, registrations of new users get a 500, and events are delivered once the database is writable again', async () => {
  const cached = await me(service.url, token('user_read_cached'));
  await deliver(service.url, userCreated('user_read_known'));
  const readOnly = async (on: boolean) => {
    await administer(`ALTER ROLE ${ROLE} SET default_transaction_read_only = ${on}`);
    await endConnections();
  };
  await readOnly(true);
  // The first request may still get a connection that PostgreSQL has closed.
  await expect.poll(async () => (await me(service.url, token('user_read_known'))).status).toBe(200);
  expect(statusAndBody(await me(service.url, token('user_read_cached')))).toEqual({
    status: 200,
    body: cached.body,
  });
  const failed = await Promise.all([
    me(service.url, token('user_read_new')),
    register(service.url, token('user_read_cached'), { identityProviderUserId: 'user_read_new' }),
    deliver(service.url, userCreated('user_read_new')),
  ]);
  expect(failed.map(statusAndBody)).toEqual(Array(3).fill(internalError));
  const event = await failedDelivery('user_read_event');
  await readOnly(false);
  expect((await service.idp.webhooks.settled(event)).status).toBe('delivered');
  expect(await rowsOf('user_read_event')).toHaveLength(1);
});

test.each([
  [
    'the database role may not read users',
    '42501',
    `REVOKE SELECT ON users FROM ${ROLE}`,
    `GRANT SELECT ON users TO ${ROLE}`,
  ],
  [
    'the database role may not insert users',
    '42501',
    `REVOKE INSERT ON users FROM ${ROLE}`,
    `GRANT INSERT ON users TO ${ROLE}`,
  ],
  [
    'the table is missing',
    '42P01',
    'ALTER TABLE users RENAME TO renamed',
    'ALTER TABLE renamed RENAME TO users',
  ],
  [
    'the unique index is missing',
    '42P10',
    'DROP INDEX users_identity_provider_user_id_key',
    'CREATE UNIQUE INDEX users_identity_provider_user_id_key ON users (identity_provider_user_id)',
  ],
])(
  'No user is registered if %s, and the log contains the SQLSTATE %s',
  async (_, sqlState, breakIt, repairIt) => {
    const id = `user_${randomBytes(6).toString('hex')}`;
    const lines = () => service.linesWith(`"sqlState":"${sqlState}"`).length;
    const before = lines();
    await administer(breakIt);
    const requests = Promise.all([me(service.url, token(id)), deliver(service.url, userCreated(id))]);
    const failed = await requests.finally(() => administer(repairIt));
    expect(failed.map(statusAndBody)).toEqual([internalError, internalError]);
    expect(await rowsOf(id)).toEqual([]);
    await expect.poll(lines).toBe(before + 2);
  },
);
