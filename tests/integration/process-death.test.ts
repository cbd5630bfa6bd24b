import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waitUntil } from '../../dev/processes';
import { holdRow } from '../support/held-row';
import { bearer, deliver, me, register, tokenFor, userCreated } from '../support/requests';
import {
  type ServiceProcess,
  startServiceProcess,
  startTestService,
  type TestService,
} from '../support/service';

/** What a platform grants between SIGTERM and SIGKILL. */
const SHUTDOWN_MS = 10_000;

const BURST = 200;

let service: TestService;
const own: ServiceProcess[] = [];

/** One more process of the service; nothing else uses it. */
async function start(): Promise<ServiceProcess> {
  const started = await startServiceProcess(service.environment);
  own.push(started);
  return started;
}

beforeAll(async () => {
  service = await startTestService();
});
afterAll(async () => {
  await Promise.all(own.map((each) => each.stop()));
  await service?.stop();
});

const caller = () => tokenFor(service.idp, 'user_caller');
const hook = (url: string) => `${url}/webhooks/idp/v1/user-created`;
const stored = async () => {
  const { rows } = await service.database.pool.query<{ id: string }>(
    'SELECT identity_provider_user_id AS id FROM users',
  );
  return rows.map(({ id }) => id);
};
const sorted = (ids: Iterable<string>) => [...ids].sort();

test('SIGKILL in the middle of a burst: nothing acknowledged is missing, and redelivery completes the rest', async () => {
  const victim = await start();
  const { webhooks, store } = service.idp;
  webhooks.setEndpoint({ url: hook(victim.url), secrets: webhooks.endpoint?.secrets ?? [] });
  await me(victim.url, caller());

  const row = await holdRow(service.database, 'user_killed_held');
  const announced = Array.from({ length: BURST }, (_, index) => `user_killed_announced_${index}`);
  const events = announced.map((id) => webhooks.send('user.created', { id }).id);
  const registered: string[] = [];
  const burst = Array.from({ length: BURST }, async (_, index) => {
    const identityProviderUserId = `user_killed_registered_${index}`;
    const { status } = await register(victim.url, caller(), { identityProviderUserId });
    if (status === 201) registered.push(identityProviderUserId);
  });
  const settled = Promise.allSettled(burst);
  const acknowledged = () =>
    store.deliveries
      .all()
      .filter((delivery) => events.includes(delivery.id) && delivery.status === 'delivered');
  expect(await waitUntil(() => registered.length > 20 && acknowledged().length > 20, 30_000)).toBe(true);
  const held = deliver(victim.url, userCreated('user_killed_held')).catch(() => undefined);
  expect(await row.waiting(1)).toBe(true);
  process.kill(victim.pid, 'SIGKILL');
  expect(await victim.exited).toBeNull();
  webhooks.pause();
  await settled;
  expect(await held, 'the held delivery was not acknowledged').toBeUndefined();
  await row.release();

  expect(registered.length, 'the kill came in the middle').toBeLessThan(BURST);
  expect(acknowledged().length, 'the kill came in the middle').toBeLessThan(BURST);
  const survived = new Set(await stored());
  const announcedAndAcknowledged = acknowledged().map(({ body }) => Object(JSON.parse(body)).data.id);
  expect([...registered, ...announcedAndAcknowledged].filter((id) => !survived.has(id))).toEqual([]);

  webhooks.setEndpoint({ url: hook(service.url), secrets: webhooks.endpoint?.secrets ?? [] });
  webhooks.resume();
  for (const event of events) expect((await webhooks.settled(event)).status).toBe('delivered');
  expect((await deliver(service.url, userCreated('user_killed_held'))).status).toBe(200);
  const complete = await stored();
  expect(sorted(complete.filter((id) => id.startsWith('user_killed_announced')))).toEqual(sorted(announced));
  expect(complete.filter((id) => id === 'user_killed_held')).toHaveLength(1);
});

/** Whether somebody listens there. */
async function listens(url: string): Promise<boolean> {
  const { port } = new URL(url);
  const socket = connect(Number(port), 'localhost');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

test.concurrent('SIGTERM: what is under way is answered, nothing new is taken, the pool is drained, and the exit is 0', async () => {
  const leaving = await start();
  const connections = async () => {
    const { rows } = await service.database.pool.query<{ port: number }>(
      `SELECT client_port AS port FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    return new Set(rows.map(({ port }) => port));
  };
  const before = await connections();
  const rows = await Promise.all(
    ['user_leaving_1', 'user_leaving_2', 'user_leaving_3'].map((id) => holdRow(service.database, id)),
  );
  const underWay = [
    me(leaving.url, tokenFor(service.idp, 'user_leaving_1')),
    register(leaving.url, caller(), { identityProviderUserId: 'user_leaving_2' }),
    deliver(leaving.url, userCreated('user_leaving_3')),
  ];
  for (const row of rows) expect(await row.waiting(1)).toBe(true);
  let terminates = 0;
  service.database.proxy.onClientData = (chunk) => {
    // The Terminate message of the PostgreSQL protocol: a polite end of a connection.
    if (chunk.subarray(-5).equals(Buffer.from([0x58, 0, 0, 0, 4]))) terminates += 1;
  };
  const opened = [...(await connections())].filter((port) => !before.has(port)).length;
  process.kill(leaving.pid, 'SIGTERM');
  const started = performance.now();
  expect(await waitUntil(async () => !(await listens(leaving.url)), SHUTDOWN_MS)).toBe(true);
  for (const row of rows) await row.release();
  const answers = await Promise.all(underWay);
  expect(answers.filter(({ status }) => status !== 200 && status !== 201)).toEqual([]);
  expect(await leaving.exited).toBe(0);
  expect(performance.now() - started).toBeLessThan(SHUTDOWN_MS);
  expect(opened).toBeGreaterThanOrEqual(3);
  expect(terminates).toBeGreaterThanOrEqual(3);
});

test.concurrent('SIGTERM with a request whose body never ends, and one that the database never answers: exit 0 in time', async () => {
  const leaving = await start();
  const row = await holdRow(service.database, 'user_never');
  const unanswered = deliver(leaving.url, userCreated('user_never'));
  expect(await row.waiting(1)).toBe(true);
  const endless = connect(Number(new URL(leaving.url).port), 'localhost').on('error', () => undefined);
  const { authorization } = bearer(caller());
  endless.write(
    `POST /auth/v1/register HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Length: 100\r\n\r\n{`,
  );
  process.kill(leaving.pid, 'SIGTERM');
  const started = performance.now();
  expect(await leaving.exited).toBe(0);
  // The bound is 9 s; a process that hung would be ended by the test's own time-out.
  expect(performance.now() - started).toBeLessThan(1.5 * SHUTDOWN_MS);
  expect(await unanswered.then(({ status }) => status)).toBe(500);
  endless.destroy();
  await row.release();
});
