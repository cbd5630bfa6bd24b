import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { startStubServer } from '../harness/dependencies/stub-server';
import type { Treatment } from '../harness/dependencies/tcp-proxy';
import { me, tokenFor } from '../harness/requests';
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

const count = (message: string) => service.linesWith(`"msg":"${message}"`).length;

/** Returns a function that makes the proxy in front of the cache fail. */
const treatConnections = (treatment: Treatment) => () => service.kv.proxy.treat(treatment);
/** Returns a function that replaces the cache with a server that uses this listener. */
const replaceStore = (listener: RequestListener) => () => {
  stubStore.handler = listener;
  service.kv.proxy.setTarget({ host: '127.0.0.1', port: stubStore.port });
};

describe('A failing cache', () => {
  test.each<[string, () => void | Promise<void>]>([
    ['refuses connections', treatConnections('refuse')],
    ['resets connections', treatConnections('reset')],
    ['drops all bytes', treatConnections('black-hole')],
    ['truncates its responses', treatConnections('truncate')],
    ['accepts requests and does not respond', replaceStore(() => undefined)],
    [
      'does not finish its response',
      replaceStore((_request, response) => response.writeHead(200).write('{"result":')),
    ],
    ['responds 401', replaceStore(json(401, '{"error":"WRONGPASS invalid or missing auth token"}'))],
    ['responds 429', replaceStore(json(429, '{"error":"ERR max requests limit exceeded"}'))],
    [
      'reports an exhausted quota for a command of a pipeline',
      replaceStore(json(200, '[{"error":"ERR max requests limit exceeded. Limit: 500000, Usage: 500000"}]')),
    ],
    [
      'reports an exhausted quota for a whole pipeline',
      replaceStore(json(200, '{"error":"ERR max requests limit exceeded"}')),
    ],
    ['responds 500', replaceStore(json(500, 'internal error'))],
    ['responds with HTML', replaceStore(json(200, '<html>not what you want</html>'))],
  ])(
    'If the cache %s, the service reads the user of a request from the database, and skips the cache after a few failures',
    async (what, fail) => {
      const id = `user_outage_${what.replaceAll(' ', '_')}`;
      const token = tokenFor(service.idp, id);
      const { body } = await me(service.url, token);
      const skipped = count('cache skipped');
      await fail();
      // This test does not check the timeout of a cache call, because `me` waits up to 30 s. tests/unit/kv.test.ts checks it.
      expect(await me(service.url, token)).toMatchObject({ status: 200, body });
      expect(await me(service.url, tokenFor(service.idp, `${id}_new`))).toMatchObject({ status: 200 });
      for (let request = 0; request < 5; request += 1) {
        expect(await me(service.url, token)).toMatchObject({ status: 200, body });
      }
      const lines = () => count('cache skipped') - skipped;
      await expect.poll(lines, { message: 'the cache is skipped' }).toBe(1);
      for (let user = 0; user < 12; user += 1) {
        const { status, headers } = await me(service.url, tokenFor(service.idp, `${id}_${user}`));
        expect({ status, timing: headers.get('server-timing') }).toEqual({
          status: 200,
          timing: expect.stringContaining('cache;desc=bypass'),
        });
      }
      expect(lines(), 'no further line in the log').toBe(1);
    },
  );

  test('A response of the cache whose result is not a string counts as a miss', async () => {
    replaceStore(json(200, '[{"result":{"a":1}}]'))();
    expect(await cacheOf('user_shaped')).toBe('miss');
  });
});

test('A WRONGTYPE error (the cached value is not a string) counts as a miss, and the cache stays in use', async () => {
  replaceStore(
    json(200, '[{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}]'),
  )();
  for (let request = 0; request < 8; request += 1) expect(await cacheOf('user_wrong_type')).toBe('miss');
});

test('The log has one line when the cache is first skipped and one line when the cache is used again', async () => {
  const before = { skipped: count('cache skipped'), back: count('cache in use again') };
  await service.kv.proxy.treat('refuse');
  for (let request = 0; request < 20; request += 1) await me(service.url, tokenFor(service.idp, 'user_log'));
  expect(count('cache skipped') - before.skipped).toBe(1);
  await service.kv.proxy.treat('forward');
  await recovers();
  expect(count('cache in use again') - before.back).toBe(1);
});

test('The cache stays out of use while its quota is exhausted, even if the cache responds to PING', async () => {
  let commands = 0;
  replaceStore(async (request, response) => {
    commands += 1;
    const isPing = (await text(request)).toLowerCase().includes('"ping"');
    const reply = isPing ? { result: 'PONG' } : { error: 'ERR max requests limit exceeded' };
    response.end(JSON.stringify([reply]));
  })();
  const before = { skipped: count('cache skipped'), back: count('cache in use again') };
  const cacheOfOneUser = () => cacheOf('user_quota');
  await expect
    .poll(async () => [await cacheOfOneUser(), count('cache skipped') - before.skipped])
    .toEqual(['bypass', 1]);
  commands = 0;
  // While the cache is out of use, only the probes of the circuit breaker reach the cache.
  await expect.poll(async () => [await cacheOfOneUser(), commands > 1]).toEqual(['bypass', true]);
  expect(count('cache in use again') - before.back).toBe(0);
});
