import type { RequestListener } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { startStubServer } from '../harness/dependencies/stub-server';
import type { Treatment } from '../harness/dependencies/tcp-proxy';
import { me, send, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/** Replaces the KV server, which is the cache, in some tests. */
const stubStore = stopAfterAll(await startStubServer());
const service = stopAfterAll(await startTestService());

/** Sends a request of a user. Returns the cache result in the Server-Timing header: `hit`, `miss` or `bypass`. */
const cacheOf = async (id: string) =>
  (await me(service.url, tokenFor(service.idp, id))).headers
    .get('server-timing')
    ?.match(/cache;desc=(\w+)/)?.[1];
const ready = async () => (await send(`${service.url}/health/ready`)).body;

/** Sends requests until the circuit breaker closes and the cache is used again. */
const recovers = () => expect.poll(() => cacheOf('user_probe')).toBe('hit');

afterEach(async () => {
  service.kv.proxy.setTarget(service.kv.address);
  await service.kv.proxy.treat('forward');
  await recovers();
});

const json =
  (status: number, body: string): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  };
const QUOTA = 'ERR max requests limit exceeded. Limit: 500000, Usage: 500000';

const count = (message: string) => service.linesWith(`"msg":"${message}"`).length;

/** Returns a function that makes the proxy in front of the cache fail. */
const treatConnections = (treatment: Treatment) => () => service.kv.proxy.treat(treatment);
/** Returns a function that replaces the cache with a server that uses this listener. */
const replaceStore = (listener: RequestListener) => () => {
  stubStore.handler = listener;
  service.kv.proxy.setTarget({ host: '127.0.0.1', port: stubStore.port });
};

test.each<[string, () => void | Promise<void>]>([
  ['refuses connections', treatConnections('refuse')],
  ['drops all bytes', treatConnections('black-hole')],
  [
    'does not finish its response',
    replaceStore((_request, response) => response.writeHead(200).write('{"result":')),
  ],
  ['reports an exhausted quota for a command', replaceStore(json(200, `[{"error":"${QUOTA}"}]`))],
  ['reports an exhausted quota for a whole pipeline', replaceStore(json(429, `{"error":"${QUOTA}"}`))],
  ['responds with HTML', replaceStore(json(200, '<html>not what you want</html>'))],
])(
  'If the cache %s, the service reads users from the database, skips the cache after a few failures, and uses it again after the outage',
  async (what, fail) => {
    const id = `user_outage_${what.replaceAll(' ', '_')}`;
    const token = tokenFor(service.idp, id);
    const { body } = await me(service.url, token);
    const before = { skipped: count('cache skipped'), back: count('cache in use again') };
    await fail();
    // This test does not check the timeout of a cache call, because `me` waits up to 30 s. tests/unit/kv.test.ts checks it.
    expect(await me(service.url, token)).toMatchObject({ status: 200, body });
    expect(await me(service.url, tokenFor(service.idp, `${id}_new`))).toMatchObject({ status: 200 });
    await expect
      .poll(async () => {
        expect(await me(service.url, token)).toMatchObject({ status: 200, body });
        return count('cache skipped') - before.skipped;
      })
      .toBe(1);
    for (let user = 0; user < 6; user += 1) expect(await cacheOf(`${id}_${user}`)).toBe('bypass');
    expect(count('cache skipped') - before.skipped, 'no further line in the log').toBe(1);
    expect(count('cache in use again') - before.back).toBe(0);
    service.kv.proxy.setTarget(service.kv.address);
    await service.kv.proxy.treat('forward');
    await recovers();
    await expect.poll(() => count('cache in use again') - before.back).toBe(1);
  },
);

test('While the cache fails, the service is ready and reports "degraded"', async () => {
  await service.kv.proxy.treat('refuse');
  await expect.poll(ready).toEqual({ status: 'degraded' });
  await service.kv.proxy.treat('forward');
  await expect.poll(ready).toEqual({ status: 'ok' });
});

test('A response of the cache whose result is not a string counts as a miss', async () => {
  replaceStore(json(200, '[{"result":{"a":1}}]'))();
  await expect.poll(() => cacheOf('user_shaped')).toBe('miss');
});
