import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { connected } from '../harness/hostile/raw-http';
import { holdRow } from '../harness/parts/held-row';
import { startTcpProxy } from '../harness/parts/tcp-proxy';
import { bearer, deliver, HOOK, me, register, tokenFor, userCreated } from '../harness/requests';
import { type ServiceProcess, startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/** What a platform grants between SIGTERM and SIGKILL. */
const SHUTDOWN_MS = 10_000;

const BURST = 200;

const service = stopAfterAll(await startTestService());

/** One more process of the service, of this test's own. */
async function start(environment: Record<string, string> = {}): Promise<ServiceProcess> {
  const started = await startServiceProcess({ ...service.environment, ...environment });
  onTestFinished(started.stop);
  return started;
}

const caller = () => tokenFor(service.idp, 'user_caller');
const hook = (url: string) => `${url}${HOOK}`;

test('SIGKILL in the middle of a burst: nothing acknowledged is missing, and redelivery completes the rest', async () => {
  const victim = await start();
  const { webhooks, store } = service.idp;
  webhooks.setEndpoint({ url: hook(victim.url), secrets: webhooks.endpoint?.secrets ?? [] });
  await me(victim.url, caller());

  // Two of the burst cannot end before the kill, however fast or slow the machine is.
  const heldIds = { registered: 'user_killed_registered_0', announced: 'user_killed_announced_0' };
  const rows = await Promise.all(Object.values(heldIds).map((id) => holdRow(service.database, id)));
  const announced = Array.from({ length: BURST }, (_, index) => `user_killed_announced_${index}`);
  const events = announced.map((id) => webhooks.send('user.created', { id }).id);
  const registered: string[] = [];
  const burst = Array.from({ length: BURST }, async (_, index) => {
    const identityProviderUserId = `user_killed_registered_${index}`;
    // One that waits for too long is a 500, which a caller repeats.
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
  await expect.poll(() => registered.length > 20 && acknowledged().length > 20).toBe(true);
  for (const row of rows) expect(await row.waiting(1, 60_000)).toBe(true);
  process.kill(victim.pid, 'SIGKILL');
  expect(await victim.exited).toBeNull();
  webhooks.pause();
  await settled;
  for (const row of rows) await row.release();

  expect(registered, 'the kill came in the middle').not.toContain(heldIds.registered);
  expect(acknowledged(), 'the kill came in the middle').not.toContain(heldIds.announced);
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

/** POST without a credential over the agent's one connection. */
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

/** Whether somebody listens there. */
const listens = (url: string) =>
  connected(url).then(
    (socket) => {
      socket.destroy();
      return true;
    },
    () => false,
  );

/** The exit code, or that the process still runs when a platform would kill it. */
const exitInTime = ({ exited }: ServiceProcess) =>
  Promise.race([exited, pause(SHUTDOWN_MS, 'still running', { ref: false })]);

test('SIGTERM: what is under way is answered, nothing new is taken, the pool is drained, and the exit is 0', async () => {
  // Sees the connections of this one process.
  const proxy = await startTcpProxy({ host: '127.0.0.1', port: service.database.proxy.port });
  onTestFinished(() => proxy.stop());
  let terminates = 0;
  proxy.onClientData = (chunk) => {
    // The Terminate message of the PostgreSQL protocol: a polite end of a connection.
    if (chunk.subarray(-5).equals(Buffer.from([0x58, 0, 0, 0, 4]))) terminates += 1;
  };
  const databaseUrl = new URL(service.database.url);
  databaseUrl.port = String(proxy.port);
  const leaving = await start({ DATABASE_URL: databaseUrl.href });
  const rows = await Promise.all(
    ['user_leaving_1', 'user_leaving_2', 'user_leaving_3'].map((id) => holdRow(service.database, id)),
  );
  const underWay = [
    me(leaving.url, tokenFor(service.idp, 'user_leaving_1')),
    register(leaving.url, caller(), { identityProviderUserId: 'user_leaving_2' }),
    deliver(leaving.url, userCreated('user_leaving_3')),
  ];
  for (const row of rows) expect(await row.waiting(1)).toBe(true);
  process.kill(leaving.pid, 'SIGTERM');
  const exit = exitInTime(leaving);
  await expect.poll(async () => !(await listens(leaving.url))).toBe(true);
  const [lost, ...others] = rows;
  // Somebody else was first: the request needs one more statement, of a pool that must not be drained yet.
  await lost?.commit();
  for (const row of others) await row.release();
  const answers = await Promise.all(underWay);
  expect(answers.filter(({ status }) => status !== 200 && status !== 201)).toEqual([]);
  expect(await exit).toBe(0);
  expect(proxy.connections).toBeGreaterThanOrEqual(3);
  expect(terminates, 'each connection was ended politely').toBe(proxy.connections);
});

test('SIGTERM under load: no client is cut off, and each is told that its connection ends', async () => {
  const leaving = await start();
  await me(leaving.url, caller());
  const { port } = new URL(leaving.url);
  const asked: string[] = [];
  /** Posts back to back over one connection, and opens no other one, until the service ends it. */
  const client = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let connection: unknown; ; ) {
      const { status, headers, socket } = await post(agent, Number(port)).catch(
        (): Posted => ({ status: 0, headers: {}, socket: undefined }),
      );
      const isKept = connection === undefined || connection === socket;
      asked.push(`${status}, ${headers.connection}`);
      if (!isKept || status !== 401 || headers.connection === 'close') break;
      connection = socket;
    }
    agent.destroy();
  };
  const clients = Promise.all(Array.from({ length: 4 }, client));
  await expect.poll(() => asked.length > 100).toBe(true);
  process.kill(leaving.pid, 'SIGTERM');
  expect(await exitInTime(leaving)).toBe(0);
  await clients;
  expect(asked.filter((answer) => answer !== '401, keep-alive')).toEqual(Array(4).fill('401, close'));
});

test('SIGTERM: who had connected and asked before is answered, by the hundred', async () => {
  const leaving = await start();
  await me(leaving.url, caller());
  const clients = await Promise.all(Array.from({ length: 200 }, () => connected(leaving.url)));
  const statuses = clients.map(async (socket) => {
    const answer = text(socket).catch(() => 'cut off');
    socket.write('POST /auth/v1/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}');
    return (await answer).slice(0, 12);
  });
  process.kill(leaving.pid, 'SIGTERM');
  expect(new Set(await Promise.all(statuses))).toEqual(new Set(['HTTP/1.1 401']));
  expect(await exitInTime(leaving)).toBe(0);
});

test('SIGTERM twice, and connections on which nothing was ever asked: the pool is drained all the same', async () => {
  const leaving = await start();
  const silent = await connected(leaving.url);
  const row = await holdRow(service.database, 'user_twice');
  const underWay = deliver(leaving.url, userCreated('user_twice'));
  expect(await row.waiting(1)).toBe(true);
  process.kill(leaving.pid, 'SIGTERM');
  await expect.poll(async () => !(await listens(leaving.url))).toBe(true);
  process.kill(leaving.pid, 'SIGTERM');
  await once(silent, 'close');
  await row.release();
  expect((await underWay).status).toBe(200);
  expect(await exitInTime(leaving)).toBe(0);
  expect(leaving.output()).not.toContain('printed by a library');
});

test('a crash after SIGTERM is no exit 0', async () => {
  const leaving = await start({
    NODE_OPTIONS: `--import ${new URL('../harness/crash-on-signal.mjs', import.meta.url).href}`,
  });
  const row = await holdRow(service.database, 'user_crashed');
  const unanswered = deliver(leaving.url, userCreated('user_crashed')).catch(() => undefined);
  expect(await row.waiting(1)).toBe(true);
  process.kill(leaving.pid, 'SIGTERM');
  await expect.poll(async () => !(await listens(leaving.url))).toBe(true);
  process.kill(leaving.pid, 'SIGUSR2');
  expect(await exitInTime(leaving)).toBe(7);
  await unanswered;
  await row.release();
});

test('SIGTERM with a request whose body never ends, and one that the database never answers: exit 0 in time', async () => {
  const leaving = await start();
  const row = await holdRow(service.database, 'user_never');
  const unanswered = deliver(leaving.url, userCreated('user_never'));
  expect(await row.waiting(1)).toBe(true);
  const endless = await connected(leaving.url);
  const { authorization } = bearer(caller());
  endless.write(
    `POST /auth/v1/register HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n{`,
  );
  let received = '';
  endless.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  await expect.poll(() => received, { message: 'the request is under way' }).toMatch(/^HTTP\/1.1 100 /);
  process.kill(leaving.pid, 'SIGTERM');
  // The service ends itself after 9 s, a second before this request would get its 408.
  expect(await exitInTime(leaving)).toBe(0);
  expect(received, 'it was not waited for').not.toContain('408');
  expect(await unanswered.then(({ status }) => status)).toBe(500);
  endless.destroy();
  await row.release();
});
