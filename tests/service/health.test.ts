import { afterEach, describe, expect, test } from 'vitest';
import document from '../../lib/api/openapi.json';
import type { TcpProxy, Treatment } from '../harness/dependencies/tcp-proxy';
import { type ParsedResponse, send } from '../harness/requests';
import { startServiceProcess, startTestService } from '../harness/service';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

const ALIVE = '/health/alive';
const READY = '/health/ready';
const ok = { status: 200, body: { status: 'ok' } };
const degraded = { status: 200, body: { status: 'degraded' } };
const noDatabase = { status: 503, body: { errors: { database: 'unavailable' } } };

const service = stopAfterAll(await startTestService());
const get = (path: string, init: RequestInit = {}) => send(`${service.url}${path}`, init);
const statusAndBody = ({ status, body }: ParsedResponse) => ({ status, body });
const ready = async () => statusAndBody(await get(READY));

afterEach(async () => {
  await service.kv.proxy.treat('forward');
  await service.database.proxy.treat('forward');
  // The service caches a readiness response for a second.
  await expect.poll(ready, { message: 'ready again without a restart' }).toEqual(ok);
});

describe.each([ALIVE, READY])('%s', (path) => {
  test(`${path} needs no credential, has the response headers of the API, allows only GET and HEAD, and has no subpath`, async () => {
    const response = await get(path, { headers: { 'x-request-id': 'probe-1' } });
    expect(statusAndBody(response)).toEqual(ok);
    expect(Object.fromEntries(response.headers)).toMatchObject({
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

  test(`The service does not log a request to ${path}`, async () => {
    await get(path);
    const requestId = `after${path.replaceAll('/', '-')}`;
    await get('/health/unknown', { headers: { 'x-request-id': requestId } });
    await expect.poll(() => service.linesWith(requestId)).toHaveLength(1);
    expect(service.linesWith(`"route":"GET ${path}`)).toEqual([]);
  });
});

describe('Readiness without the cache', () => {
  test.each<Treatment>(['refuse', 'reset', 'black-hole', 'truncate'])(
    'The service stays ready and reports "degraded" while the cache fails (%s)',
    async (treatment) => {
      await service.kv.proxy.treat(treatment);
      await expect.poll(ready).toEqual(degraded);
      await service.kv.proxy.treat('forward');
      await expect.poll(ready).toEqual(ok);
    },
  );
});

describe('Readiness without the database', () => {
  const count = (message: string) => service.linesWith(`"msg":"${message}"`).length;

  test.each<Treatment>(['refuse', 'reset', 'black-hole'])(
    'The service is not ready while the database fails (%s), and logs the start and the end of the failure once each',
    async (treatment) => {
      const before = { started: count('not ready'), ended: count('ready again') };
      await service.database.proxy.treat(treatment);
      await expect.poll(ready, { timeout: 30_000 }).toEqual(noDatabase);
      expect(statusAndBody(await get(ALIVE))).toEqual(ok);
      for (let second = 0; second < 2; second += 1) expect(await ready()).toEqual(noDatabase);
      await expect.poll(() => count('not ready') - before.started).toBe(1);
      expect(count('ready again') - before.ended).toBe(0);
      await service.database.proxy.treat('forward');
      await expect.poll(ready, { timeout: 30_000 }).toEqual(ok);
      await expect.poll(() => count('ready again') - before.ended).toBe(1);
      expect(count('not ready') - before.started, 'no further line').toBe(1);
    },
  );

  test('If the database does not respond, a readiness probe ends at the timeout for probes, not at the timeout for queries', async () => {
    expect(await ready()).toEqual(ok);
    const before = count('not ready');
    await service.database.proxy.treat('black-hole');
    await expect.poll(ready, { timeout: 30_000 }).toEqual(noDatabase);
    const lines = () => service.linesWith('"msg":"not ready"');
    await expect.poll(lines).toHaveLength(before + 1);
    // Only the timeout for probes logs `Timed out`. The database driver reports a query timeout as `Query read timeout`.
    expect(lines().at(-1)).toContain('Timed out');
  });

  test('The service is not ready while both database and cache fail', async () => {
    await service.kv.proxy.treat('black-hole');
    await service.database.proxy.treat('refuse');
    await expect.poll(ready, { timeout: 30_000 }).toEqual(noDatabase);
  });
});

describe('Many concurrent probes', () => {
  /**
   * Sends 200 concurrent probes and then 30 in sequence. Returns the duration in seconds, rounded up. This is also the maximum
   * number of probes that may reach a dependency, because at most one probe per second may reach it. A probe may get a 503,
   * because a healthy database can be slow on a busy machine.
   */
  async function sendProbes(): Promise<number> {
    const started = performance.now();
    const responses = await Promise.all(Array.from({ length: 200 }, ready));
    for (let probe = 0; probe < 30; probe += 1) responses.push(await ready());
    expect(responses.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
    return Math.ceil((performance.now() - started) / 1_000);
  }

  test('Many readiness probes reach a healthy database and cache at most once per second', async () => {
    service.database.takeStatements();
    service.kv.takeCommands();
    const seconds = await sendProbes();
    const received = [
      service.database.takeStatements(),
      service.kv.takeCommands().map(([command]) => command),
    ];
    expect(received.flat().filter((what) => what !== 'SELECT 1' && what !== 'ping')).toEqual([]);
    for (const each of received) expect(each.length).toBeLessThanOrEqual(seconds);
  });

  test.each<[string, () => TcpProxy, object]>([
    ['the database', () => service.database.proxy, noDatabase],
    ['the cache', () => service.kv.proxy, degraded],
  ])(
    'Many readiness probes open at most one connection per second to %s while it resets connections',
    async (_what, proxy, expected) => {
      await proxy().treat('reset');
      await expect.poll(ready).toEqual(expected);
      const before = proxy().connections;
      const seconds = await sendProbes();
      expect(proxy().connections - before).toBeLessThanOrEqual(seconds);
    },
  );

  test('If the database does not respond, many readiness probes cause at most about one query or connection per second', async () => {
    expect(await ready()).toEqual(ok);
    await service.database.proxy.treat('black-hole');
    service.database.takeStatements();
    const before = service.database.proxy.connections;
    await expect.poll(ready, { timeout: 30_000 }).toEqual(noDatabase);
    const seconds = await sendProbes();
    const attempts = service.database.takeStatements().length + service.database.proxy.connections - before;
    expect(attempts).toBeLessThanOrEqual(seconds + 1);
  });
});

test('After SIGTERM, the process still accepts requests for a moment: /health/ready responds 503, and each response closes its connection', async () => {
  const stopping = stopAfterTest(await startServiceProcess(service.environment));
  expect(statusAndBody(await send(`${stopping.url}${READY}`))).toEqual(ok);
  process.kill(stopping.pid, 'SIGTERM');
  const { examples } = document.paths[READY].get.responses[503].content['application/json'];
  await expect
    .poll(async () => statusAndBody(await send(`${stopping.url}${READY}`)), { interval: 10 })
    .toEqual({ status: 503, body: examples.stopping.value });
  expect(await stopping.exited).toBe(0);
});
