import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { lockInserts } from '../harness/dependencies/row-lock';
import { deliver, me, type ParsedResponse, register, send, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const POOL_CONNECTIONS = 10;

const service = stopAfterAll(
  await startTestService({
    // The service uses a separate role without superuser rights, because connection limits do not apply to a superuser.
    databaseUrl: async (database) =>
      (await database.createRole('GRANT SELECT, INSERT ON users TO $role')).url,
  }),
);
const role = new URL(service.environment['DATABASE_URL'] ?? '').username;
const { database, idp, url } = service;

const administer = (statement: string) => database.pool.query(statement);
const endConnections = () =>
  administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`);
const token = (id: string) => tokenFor(idp, id);

const statusOfNewUser = async () => (await me(url, token(`user_${randomBytes(6).toString('hex')}`))).status;
const ready = async () => statusAndBody(await send(`${url}/health/ready`));

afterEach(async () => {
  await database.proxy.treat('forward');
  await expect.poll(statusOfNewUser, { message: 'the service recovers without a restart' }).toBe(200);
});

const count = (message: string) => service.linesWith(`"msg":"${message}"`).length;
const internalError = { status: 500, body: { message: 'Internal Server Error' } };
const statusAndBody = ({ status, body }: ParsedResponse) => ({ status, body });

/** Requests /users/v1/me until the internal id of the user comes from the cache. Returns the body of the response. */
async function cache(id: string): Promise<unknown> {
  let body: unknown;
  await expect
    .poll(async () => {
      const response = await me(url, token(id));
      body = response.body;
      return response.headers.get('server-timing');
    })
    .toContain('cache;desc=hit');
  return body;
}

/** Sends one request of each kind that needs the database, for a new user. */
const requestsOf = (id: string, caller: string) => [
  me(url, token(`${id}_guard`)),
  register(url, token(caller), { identityProviderUserId: `${id}_register` }),
  deliver(url, userCreated(`${id}_webhook`)),
];

/** Makes the database stop responding while each connection of the service runs a query. Returns how to end this. */
async function stopResponding() {
  const lock = await lockInserts(database);
  const inFlight = Array.from({ length: 14 }, (_, index) => deliver(url, userCreated(`user_dark_${index}`)));
  expect(await lock.waiting(POOL_CONNECTIONS)).toBe(true);
  await database.proxy.treat('black-hole');
  return async () => {
    expect((await Promise.all(inFlight)).map(statusAndBody)).toEqual(Array(14).fill(internalError));
    await lock.release();
    await database.proxy.treat('forward');
  };
}

test.each<[string, () => Promise<() => Promise<unknown>>]>([
  [
    'refuses connections',
    async () => {
      await database.proxy.treat('refuse');
      return () => database.proxy.treat('forward');
    },
  ],
  ['stops responding while all connections run a query', stopResponding],
  [
    'has no free connection',
    async () => {
      await administer(`ALTER ROLE ${role} CONNECTION LIMIT 0`);
      await endConnections();
      return () => administer(`ALTER ROLE ${role} CONNECTION LIMIT -1`);
    },
  ],
])(
  'If the database %s, cached users are still served, requests that need the database get a 500, and the service is not ready',
  async (what, fail) => {
    const id = `user_${what.replaceAll(' ', '_')}`;
    const caller = `${id}_caller`;
    const body = await cache(caller);
    const lines = { started: count('not ready'), ended: count('ready again') };
    const heal = await fail();
    const requests = Promise.all(requestsOf(id, caller));
    await expect.poll(ready).toEqual({ status: 503, body: { errors: { database: 'unavailable' } } });
    expect(statusAndBody(await send(`${url}/health/alive`))).toEqual({ status: 200, body: { status: 'ok' } });
    expect(await cache(caller)).toEqual(body);
    expect((await requests).map(statusAndBody)).toEqual(Array(3).fill(internalError));
    await heal();
    await expect.poll(ready).toMatchObject({ status: 200 });
    expect(count('not ready') - lines.started).toBe(1);
    expect(count('ready again') - lines.ended).toBe(1);
  },
);
