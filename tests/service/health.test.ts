import { afterEach, describe, expect, test } from 'vitest';
import document from '../../lib/api/openapi.json';
import { connected, exchange, requestHead } from '../harness/hostile/raw-http';
import { holdRow } from '../harness/parts/held-row';
import { startImpostor } from '../harness/parts/impostor';
import type { TcpProxy, Treatment } from '../harness/parts/tcp-proxy';
import { type Answer, bearer, ME, send, tokenFor } from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

const ALIVE = '/health/alive';
const READY = '/health/ready';
const ok = { status: 200, body: { status: 'ok' } };
const degraded = { status: 200, body: { status: 'degraded' } };
const noDatabase = { status: 503, body: { errors: { database: 'unavailable' } } };

const service = stopAfterAll(await startTestService());
const get = (path: string, init: RequestInit = {}) => send(`${service.url}${path}`, init);
const told = ({ status, body }: Answer) => ({ status, body });
const ready = async () => told(await get(READY));

afterEach(async () => {
  await service.kv.proxy.treat('forward');
  await service.database.proxy.treat('forward');
  // An answer is told for a second.
  await expect.poll(ready, { message: 'ready again, with no restart' }).toEqual(ok);
});

describe.each([ALIVE, READY])('%s', (path) => {
  test('is answered to anybody as every answer of the API is, and by no method but GET and HEAD', async () => {
    const answer = await get(path, { headers: { 'x-request-id': 'probe-1' } });
    expect(told(answer)).toEqual(ok);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-request-id': 'probe-1',
      'x-content-type-options': 'nosniff',
    });
    const head = await fetch(`${service.url}${path}`, { method: 'HEAD' });
    expect({ status: head.status, body: await head.text() }).toEqual({ status: 200, body: '' });
    for (const method of ['POST', 'PUT', 'DELETE']) expect((await get(path, { method })).status).toBe(405);
    expect((await get(`${path}/x`)).status).toBe(404);
  });

  test('has no line in the log', async () => {
    await get(path);
    const requestId = `behind${path.replaceAll('/', '-')}`;
    await get('/health/unknown', { headers: { 'x-request-id': requestId } });
    await expect.poll(() => service.linesWith(requestId)).toHaveLength(1);
    expect(service.linesWith(`"route":"GET ${path}`)).toEqual([]);
  });
});

describe('without the cache', () => {
  test.each<Treatment>(['refuse', 'reset', 'black-hole', 'half-an-answer'])(
    '%s: it is ready, and says that it is degraded, for as long as that lasts',
    async (treatment) => {
      await service.kv.proxy.treat(treatment);
      await expect.poll(ready).toEqual(degraded);
      await service.kv.proxy.treat('forward');
      await expect.poll(ready).toEqual(ok);
    },
  );
});

describe('without the database', () => {
  const count = (message: string) => service.linesWith(`"msg":"${message}"`).length;

  test.each<Treatment>(['refuse', 'reset', 'black-hole'])(
    '%s: it is not ready, tells nobody why, and says so in the log when that begins and when it ends',
    async (treatment) => {
      const before = { begun: count('not ready'), ended: count('ready again') };
      await service.database.proxy.treat(treatment);
      await expect.poll(ready, { timeout: 30_000 }).toEqual(noDatabase);
      expect(told(await get(ALIVE))).toEqual(ok);
      for (let second = 0; second < 2; second += 1) expect(await ready()).toEqual(noDatabase);
      await expect.poll(() => count('not ready') - before.begun).toBe(1);
      expect(count('ready again') - before.ended).toBe(0);
      await service.database.proxy.treat('forward');
      await expect.poll(ready, { timeout: 30_000 }).toEqual(ok);
      await expect.poll(() => count('ready again') - before.ended).toBe(1);
      expect(count('not ready') - before.begun, 'no further line').toBe(1);
    },
  );

  test('a database that is silent is given up by the bound of a probe, not by those of a query', async () => {
    expect(await ready()).toEqual(ok);
    const before = count('not ready');
    await service.database.proxy.treat('black-hole');
    await expect.poll(ready, { timeout: 30_000 }).toEqual(noDatabase);
    const lines = () => service.linesWith('"msg":"not ready"');
    await expect.poll(lines).toHaveLength(before + 1);
    expect(lines().at(-1)).toContain('Timed out');
  });

  test('nor is it ready without the cache', async () => {
    await service.kv.proxy.treat('black-hole');
    await service.database.proxy.treat('refuse');
    await expect.poll(ready, { timeout: 30_000 }).toEqual(noDatabase);
  });
});

describe('however many ask, database and cache are asked once a second at most', () => {
  /**
   * For how many seconds 200 ask at once, and then 30 one after the other: one of them begins anew in each. On a machine that
   * is busy enough, even a database that is well is slower than the bound.
   */
  async function crowd(): Promise<number> {
    const started = performance.now();
    const answers = await Promise.all(Array.from({ length: 200 }, ready));
    for (let probe = 0; probe < 30; probe += 1) answers.push(await ready());
    expect(answers.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
    return Math.ceil((performance.now() - started) / 1_000);
  }

  test('while they answer', async () => {
    service.database.takeStatements();
    service.kv.takeCommands();
    const seconds = await crowd();
    const asked = [service.database.takeStatements(), service.kv.takeCommands().map(([command]) => command)];
    expect(asked.flat().filter((what) => what !== 'SELECT 1' && what !== 'ping')).toEqual([]);
    for (const each of asked) expect(each.length).toBeLessThanOrEqual(seconds);
  });

  test.each<[string, () => TcpProxy, object]>([
    ['the database', () => service.database.proxy, noDatabase],
    ['the cache', () => service.kv.proxy, degraded],
  ])('while %s does not', async (_what, proxy, expected) => {
    await proxy().treat('reset');
    await expect.poll(ready).toEqual(expected);
    const before = proxy().connections;
    const seconds = await crowd();
    expect(proxy().connections - before).toBeLessThanOrEqual(seconds);
  });

  test('while the database is silent: the one question that there is takes one connection', async () => {
    expect(await ready()).toEqual(ok);
    await service.database.proxy.treat('black-hole');
    service.database.takeStatements();
    const before = service.database.proxy.connections;
    await expect.poll(ready, { timeout: 30_000 }).toEqual(noDatabase);
    const seconds = await crowd();
    const asked = service.database.takeStatements().length + service.database.proxy.connections - before;
    expect(asked).toBeLessThanOrEqual(seconds + 1);
  });
});

test('nobody is asked for keys by which to judge a credential that comes along', async () => {
  const provider = stopAfterTest(await startImpostor(() => undefined));
  const started = stopAfterTest(
    await startServiceProcess({ ...service.environment, IDP_JWT_KEY: '', CLERK_API_URL: provider.url }),
  );
  for (const path of [ALIVE, READY]) {
    const headers = bearer(tokenFor(service.idp, 'user_of_a_probe'));
    expect(told(await send(`${started.url}${path}`, { headers }))).toEqual(ok);
  }
  expect(provider.calls).toEqual([]);
});

test('after SIGTERM it is alive and not ready', async () => {
  const leaving = stopAfterTest(await startServiceProcess(service.environment));
  expect(told(await send(`${leaving.url}${READY}`))).toEqual(ok);
  const row = await holdRow(service.database, 'user_held_back');
  const authorization = `Bearer ${tokenFor(service.idp, 'user_held_back')}`;
  const bytes = [
    requestHead(`GET ${ME} HTTP/1.1`, { Connection: 'keep-alive', Authorization: authorization }),
    requestHead(`GET ${READY} HTTP/1.1`, { Connection: 'keep-alive' }),
    requestHead(`GET ${ALIVE} HTTP/1.1`),
  ].join('');
  const answers = exchange(leaving.url, { bytes });
  expect(await row.waiting(1)).toBe(true);
  process.kill(leaving.pid, 'SIGTERM');
  const listens = async () => {
    const socket = await connected(leaving.url).catch(() => undefined);
    return socket?.destroy() !== undefined;
  };
  // The probes wait behind the first request: they are answered once the process is leaving.
  await expect.poll(listens).toBe(false);
  await row.release();
  const { statuses, text } = await answers;
  expect(statuses.slice(1)).toEqual([503, 200]);
  const { examples } = document.paths[READY].get.responses[503].content['application/json'];
  expect(text).toContain(JSON.stringify(examples.stopping.value));
  expect(await leaving.exited).toBe(0);
});
