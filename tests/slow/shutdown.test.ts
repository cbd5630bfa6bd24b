import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { lockRow } from '../harness/dependencies/row-lock';
import { connected } from '../harness/raw-http';
import { bearer, deliver, me, tokenFor, userCreated } from '../harness/requests';
import { startDependencies, startServiceProcess } from '../harness/service';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

const service = stopAfterAll(await startDependencies());

/** Starts a process of the service for one test. */
const start = async (environment: Record<string, string> = {}) =>
  stopAfterTest(await startServiceProcess({ ...service.environment, ...environment }));

const caller = () => tokenFor(service.idp, 'user_caller');

test('A request that arrives after SIGTERM gets a response with "Connection: close"', async () => {
  const stopping = await start();
  await me(stopping.url, caller());
  process.kill(stopping.pid, 'SIGTERM');
  const connection = async () => (await me(stopping.url, caller())).headers.get('connection');
  await expect.poll(connection).toBe('close');
  expect(await stopping.exited).toBe(0);
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
  expect(await stopping.exited).toBe(0);
});

test('The service exits with 0 after SIGTERM even if a request body is incomplete and a query is blocked', async () => {
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
  expect(await stopping.exited).toBe(0);
  expect(received, 'the service did not wait for the body').not.toContain('408');
  expect(await blocked.then(({ status }) => status)).toBe(500);
  endless.destroy();
  await row.release();
});
