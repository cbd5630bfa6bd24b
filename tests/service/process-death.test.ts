import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { startBurst, violationsOf } from '../harness/burst';
import { lockRow } from '../harness/dependencies/row-lock';
import { startTcpProxy } from '../harness/dependencies/tcp-proxy';
import { connected } from '../harness/raw-http';
import { deliver, me, register, tokenFor, userCreated } from '../harness/requests';
import { startServiceProcess } from '../harness/service';
import { sharedService } from '../vitest/shared-service';

const service = sharedService();

test('After SIGKILL under load, every user whose request got a 2xx has one row and one internal id, and the requests succeed at other processes', async () => {
  const victim = await startServiceProcess(service.environment);
  onTestFinished(victim.stop);
  const burst = await startBurst({ ...service, processes: [victim, ...service.processes] }, 'killed');
  await expect.poll(() => burst.acknowledged().size).toBeGreaterThan(10);
  const lock = await lockRow(service.database, 'user_cut_off');
  onTestFinished(lock.release);
  const cutOff = expect(me(victim.url, tokenFor(service.idp, 'user_cut_off'))).rejects.toThrow();
  expect(await lock.waiting(1)).toBe(true);
  process.kill(victim.pid, 'SIGKILL');
  expect(await victim.exited).toBe('SIGKILL');
  await cutOff;
  await burst.end();
  expect(await violationsOf(service, burst)).toEqual([]);
});

/** Returns true if the service accepts connections. */
const listens = (url: string) =>
  connected(url).then(
    (socket) => {
      socket.destroy();
      return true;
    },
    () => false,
  );

test('After SIGTERM, the service completes requests in flight, closes idle connections and the port, drains the pool and exits with 0', async () => {
  // The proxy counts only the connections of the process that is stopped.
  const databaseUrl = new URL(service.environment['DATABASE_URL'] ?? '');
  const proxy = await startTcpProxy({ host: databaseUrl.hostname, port: Number(databaseUrl.port) });
  onTestFinished(proxy.stop);
  databaseUrl.port = String(proxy.port);
  let terminates = 0;
  proxy.onClientData = (chunk) => {
    // The Terminate message of the PostgreSQL protocol, which closes a connection properly.
    if (chunk.subarray(-5).equals(Buffer.from([0x58, 0, 0, 0, 4]))) terminates += 1;
  };
  const stopping = await startServiceProcess({ ...service.environment, DATABASE_URL: databaseUrl.href });
  onTestFinished(stopping.stop);
  const { url, pid, exited } = stopping;
  const caller = tokenFor(service.idp, 'user_stopping_caller');
  await me(url, caller);
  const isIdleClosed = once(await connected(url), 'close');
  const ids = ['user_stopping_1', 'user_stopping_2', 'user_stopping_3'] as const;
  const rows = await Promise.all(ids.map((id) => lockRow(service.database, id)));
  const inFlight = [
    me(url, tokenFor(service.idp, ids[0])),
    register(url, caller, { identityProviderUserId: ids[1] }),
    deliver(url, userCreated(ids[2])),
  ];
  for (const row of rows) expect(await row.waiting(1)).toBe(true);
  process.kill(pid, 'SIGTERM');
  await expect.poll(async () => !(await listens(url))).toBe(true);
  process.kill(pid, 'SIGTERM'); // a second signal has no effect
  const [lost, ...others] = rows;
  // Each lock is an open transaction that has inserted the row of a user. The commit of the first lock makes the first request
  // lose the race for the row of its user. That request then needs another statement, which reads the row. Therefore, the pool
  // must not be drained yet.
  await lost?.commit();
  for (const row of others) await row.release();
  const responses = await Promise.all(inFlight);
  expect(responses.map(({ status }) => status)).toEqual([200, 201, 200]);
  expect(responses.map(({ headers }) => headers.get('connection'))).toEqual(Array(3).fill('close'));
  await isIdleClosed;
  expect(await exited).toBe(0);
  expect(terminates, 'each connection was closed properly').toBe(proxy.connections);
});
