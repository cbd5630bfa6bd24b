import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { BUILD_FOLDER } from '../harness/build';
import { lockRow } from '../harness/dependencies/row-lock';
import { startTcpProxy } from '../harness/dependencies/tcp-proxy';
import { connected, requestHead } from '../harness/hostile/raw-http';
import { bearer, deliver, HOOK, me, register, tokenFor, userCreated } from '../harness/requests';
import { type ServiceProcess, startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/** Time that platforms grant between SIGTERM and SIGKILL. */
const SHUTDOWN_MS = 10_000;

/** Number of registrations and of webhook events that are sent at the same time. */
const BURST = 40;

const service = stopAfterAll(await startTestService());

/** Starts another process of the service for one test. */
async function start(environment: Record<string, string> = {}): Promise<ServiceProcess> {
  const started = await startServiceProcess({ ...service.environment, ...environment });
  onTestFinished(started.stop);
  return started;
}

const caller = () => tokenFor(service.idp, 'user_caller');
const hook = (url: string) => `${url}${HOOK}`;

test('After SIGKILL under load, every user whose registration or webhook delivery got a 2xx has a row. A redelivery registers the users of all events', async () => {
  const victim = await start();
  const { webhooks, store } = service.idp;
  webhooks.setEndpoint({ url: hook(victim.url), secrets: webhooks.endpoint?.secrets ?? [] });
  await me(victim.url, caller());

  // Row locks keep one registration and one webhook delivery in flight until the kill.
  const lockedIds = { registered: 'user_killed_registered_0', announced: 'user_killed_announced_0' };
  const rows = await Promise.all(Object.values(lockedIds).map((id) => lockRow(service.database, id)));
  const announced = Array.from({ length: BURST }, (_, index) => `user_killed_announced_${index}`);
  const events = announced.map((id) => webhooks.send('user.created', { id }).id);
  const registered: string[] = [];
  const burst = Array.from({ length: BURST }, async (_, index) => {
    const identityProviderUserId = `user_killed_registered_${index}`;
    // A request that waits too long gets a 500. This loop then repeats the request, as a real caller does.
    for (let status = 500; status === 500; ) {
      ({ status } = await register(victim.url, caller(), { identityProviderUserId }));
      if (status === 201) registered.push(identityProviderUserId);
    }
  });
  const settled = Promise.allSettled(burst);
  const acknowledged = () =>
    store.deliveries
      .all()
      .filter((delivery) => events.includes(delivery.id) && delivery.status === 'delivered')
      .map(({ body }) => z.object({ data: z.object({ id: z.string() }) }).parse(JSON.parse(body)).data.id);
  await expect.poll(() => registered.length > 4 && acknowledged().length > 4).toBe(true);
  for (const row of rows) expect(await row.waiting(1, 60_000)).toBe(true);
  process.kill(victim.pid, 'SIGKILL');
  expect(await victim.exited).toBeNull();
  webhooks.pause();
  await settled;
  for (const row of rows) await row.release();

  expect(registered, 'the kill interrupted the burst').not.toContain(lockedIds.registered);
  expect(acknowledged(), 'the kill interrupted the burst').not.toContain(lockedIds.announced);
  const survived = new Set(await service.database.users());
  expect([...registered, ...acknowledged()].filter((id) => !survived.has(id))).toEqual([]);

  webhooks.setEndpoint({ url: hook(service.url), secrets: webhooks.endpoint?.secrets ?? [] });
  webhooks.resume();
  for (const event of events) expect((await webhooks.settled(event)).status).toBe('delivered');
  expect(await service.database.users('user_killed_announced%')).toEqual(announced.toSorted());
});

interface Posted {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly socket: unknown;
}

/** Sends a POST without a credential over the single connection of the agent. */
function post(agent: Agent, port: number) {
  return new Promise<Posted>((resolve, reject) => {
    const sent = request(
      { agent, port, host: 'localhost', method: 'POST', path: '/auth/v1/register' },
      (response) => {
        const { statusCode: status, headers, socket } = response;
        response.resume().once('end', () => resolve({ status, headers, socket }));
      },
    );
    sent.once('error', reject).end('{}');
  });
}

/** Returns true if the service accepts connections. */
const listens = (url: string) =>
  connected(url).then(
    (socket) => {
      socket.destroy();
      return true;
    },
    () => false,
  );

/** Resolves with the exit code, or with 'still running' when a platform would kill the process. */
const exitInTime = ({ exited }: ServiceProcess) =>
  Promise.race([exited, pause(SHUTDOWN_MS, 'still running', { ref: false })]);

test('After SIGTERM, the service completes requests in flight, closes the port, drains the pool and exits with 0', async () => {
  // The proxy counts only the connections of the process that is stopped.
  const proxy = await startTcpProxy({ host: '127.0.0.1', port: service.database.proxy.port });
  onTestFinished(() => proxy.stop());
  let terminates = 0;
  proxy.onClientData = (chunk) => {
    // The Terminate message of the PostgreSQL protocol, which closes a connection properly.
    if (chunk.subarray(-5).equals(Buffer.from([0x58, 0, 0, 0, 4]))) terminates += 1;
  };
  const databaseUrl = new URL(service.database.url);
  databaseUrl.port = String(proxy.port);
  const stopping = await start({ DATABASE_URL: databaseUrl.href });
  const rows = await Promise.all(
    ['user_stopping_1', 'user_stopping_2', 'user_stopping_3'].map((id) => lockRow(service.database, id)),
  );
  const inFlight = [
    me(stopping.url, tokenFor(service.idp, 'user_stopping_1')),
    register(stopping.url, caller(), { identityProviderUserId: 'user_stopping_2' }),
    deliver(stopping.url, userCreated('user_stopping_3')),
  ];
  for (const row of rows) expect(await row.waiting(1)).toBe(true);
  process.kill(stopping.pid, 'SIGTERM');
  const exit = exitInTime(stopping);
  await expect.poll(async () => !(await listens(stopping.url))).toBe(true);
  const [lost, ...others] = rows;
  // Each lock is an open transaction that has inserted the row of a user. The commit of the first lock makes the first request
  // lose the race for the row of its user. That request then needs another statement, which reads the row. Therefore, the pool
  // must not be drained yet.
  await lost?.commit();
  for (const row of others) await row.release();
  const responses = await Promise.all(inFlight);
  expect(responses.filter(({ status }) => status !== 200 && status !== 201)).toEqual([]);
  expect(await exit).toBe(0);
  expect(proxy.connections).toBeGreaterThanOrEqual(3);
  expect(terminates, 'each connection was closed properly').toBe(proxy.connections);
});

test('After SIGTERM under load, the last response to each client has "Connection: close"', async () => {
  const stopping = await start();
  await me(stopping.url, caller());
  const { port } = new URL(stopping.url);
  const received: string[] = [];
  /** Sends requests over one connection until the service closes that connection. */
  const client = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let connection: unknown; ; ) {
      const { status, headers, socket } = await post(agent, Number(port)).catch(
        (): Posted => ({ status: 0, headers: {}, socket: undefined }),
      );
      const isReused = connection === undefined || connection === socket;
      received.push(`${status}, ${headers.connection}`);
      if (!isReused || status !== 401 || headers.connection === 'close') break;
      connection = socket;
    }
    agent.destroy();
  };
  const clients = Promise.all(Array.from({ length: 4 }, client));
  await expect.poll(() => received.length > 100).toBe(true);
  process.kill(stopping.pid, 'SIGTERM');
  expect(await exitInTime(stopping)).toBe(0);
  await clients;
  expect(received.filter((response) => response !== '401, keep-alive')).toEqual(Array(4).fill('401, close'));
});

test('Each of 20 clients that sent a request before SIGTERM gets a response', async () => {
  const stopping = await start();
  await me(stopping.url, caller());
  const clients = await Promise.all(Array.from({ length: 20 }, () => connected(stopping.url)));
  const statuses = clients.map(async (socket) => {
    const response = text(socket).catch(() => 'cut off');
    socket.write('POST /auth/v1/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}');
    return (await response).slice(0, 12);
  });
  process.kill(stopping.pid, 'SIGTERM');
  expect(new Set(await Promise.all(statuses))).toEqual(new Set(['HTTP/1.1 401']));
  expect(await exitInTime(stopping)).toBe(0);
});

test('After two SIGTERM signals, the service closes an idle connection, completes a request in flight and exits with 0', async () => {
  const stopping = await start();
  const silent = await connected(stopping.url);
  const row = await lockRow(service.database, 'user_twice');
  const inFlight = deliver(stopping.url, userCreated('user_twice'));
  expect(await row.waiting(1)).toBe(true);
  process.kill(stopping.pid, 'SIGTERM');
  await expect.poll(async () => !(await listens(stopping.url))).toBe(true);
  process.kill(stopping.pid, 'SIGTERM');
  await row.release();
  expect((await inFlight).status).toBe(200);
  await once(silent, 'close');
  expect(await exitInTime(stopping)).toBe(0);
});

test('Downloads that clients have aborted do not delay the shutdown of the service', async () => {
  const stopping = await start();
  const [chunk] = readdirSync(`${BUILD_FOLDER}/static/chunks`).filter((name) => name.endsWith('.js'));
  for (let index = 0; index < 20; index += 1) {
    const client = await connected(stopping.url);
    client.write(requestHead(`GET /_next/static/chunks/${chunk} HTTP/1.1`, {}));
    await once(client, 'data');
    client.destroy();
  }
  process.kill(stopping.pid, 'SIGTERM');
  expect(await Promise.race([stopping.exited, pause(SHUTDOWN_MS / 2, 'still running')])).toBe(0);
});

test('A process that crashes after SIGTERM exits with the exit code of the crash', async () => {
  const stopping = await start({
    NODE_OPTIONS: `--import ${new URL('../harness/crash-on-signal.mjs', import.meta.url).href}`,
  });
  const row = await lockRow(service.database, 'user_crashed');
  const aborted = deliver(stopping.url, userCreated('user_crashed')).catch(() => undefined);
  expect(await row.waiting(1)).toBe(true);
  process.kill(stopping.pid, 'SIGTERM');
  await expect.poll(async () => !(await listens(stopping.url))).toBe(true);
  process.kill(stopping.pid, 'SIGUSR2');
  // The exit code of crash-on-signal.mjs.
  expect(await exitInTime(stopping)).toBe(7);
  await aborted;
  await row.release();
});

test('The service exits with 0 within 10 s after SIGTERM, even if a request body is incomplete and a query is blocked', async () => {
  const stopping = await start();
  const row = await lockRow(service.database, 'user_never');
  const blocked = deliver(stopping.url, userCreated('user_never'));
  expect(await row.waiting(1)).toBe(true);
  const endless = await connected(stopping.url);
  const { authorization } = bearer(caller());
  endless.write(
    `POST /auth/v1/register HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n{`,
  );
  let received = '';
  endless.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  await expect.poll(() => received, { message: 'the request is in flight' }).toMatch(/^HTTP\/1.1 100 /);
  process.kill(stopping.pid, 'SIGTERM');
  // The service exits after 9 s. The request with the incomplete body would get its 408 a second later.
  expect(await exitInTime(stopping)).toBe(0);
  expect(received, 'the service did not wait for the body').not.toContain('408');
  expect(await blocked.then(({ status }) => status)).toBe(500);
  endless.destroy();
  await row.release();
});
