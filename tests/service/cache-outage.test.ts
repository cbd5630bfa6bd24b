import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { startImpostor } from '../harness/parts/impostor';
import type { Treatment } from '../harness/parts/tcp-proxy';
import { me, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

/** Stands where the KV server should be. */
const oddServer = stopAfterAll(await startImpostor());
const service = stopAfterAll(await startTestService());

const cacheOf = async (id: string) =>
  (await me(service.url, tokenFor(service.idp, id))).headers
    .get('server-timing')
    ?.match(/cache;desc=(\w+)/)?.[1];

/** Requests until the cache serves again: the breaker closes on its own. */
const recovers = () => expect.poll(() => cacheOf('user_probe')).toBe('hit');

afterEach(async () => {
  service.kv.proxy.lead(service.kv.address);
  await service.kv.proxy.treat('forward');
  await recovers();
});

const json =
  (status: number, body: string): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  };

const count = (message: string) => service.linesWith(`"msg":"${message}"`).length;

const transport = (treatment: Treatment) => () => service.kv.proxy.treat(treatment);
const odd = (listener: RequestListener) => () => {
  oddServer.answer = listener;
  service.kv.proxy.lead({ host: '127.0.0.1', port: oddServer.port });
};

describe('while the cache fails, the guard answers from the database', () => {
  test.each<[string, () => void | Promise<void>]>([
    ['refused', transport('refuse')],
    ['reset', transport('reset')],
    ['black-holed', transport('black-hole')],
    ['half an answer', transport('half-an-answer')],
    ['accepting and never answering', odd(() => undefined)],
    ['never ending its answer', odd((_request, response) => response.writeHead(200).write('{"result":'))],
    ['401', odd(json(401, '{"error":"WRONGPASS invalid or missing auth token"}'))],
    ['429', odd(json(429, '{"error":"ERR max requests limit exceeded"}'))],
    [
      'an exhausted quota in a pipeline',
      odd(json(200, '[{"error":"ERR max requests limit exceeded. Limit: 500000, Usage: 500000"}]')),
    ],
    [
      'an exhausted quota in place of a pipeline',
      odd(json(200, '{"error":"ERR max requests limit exceeded"}')),
    ],
    ['500', odd(json(500, 'internal error'))],
    ['garbage', odd(json(200, '<html>not what you want</html>'))],
  ])('%s: correct, and soon given up', async (what, fail) => {
    const id = `user_outage_${what.replaceAll(' ', '_')}`;
    const token = tokenFor(service.idp, id);
    const { body } = await me(service.url, token);
    const skipped = count('cache skipped');
    await fail();
    // How long a call may take is the matter of tests/unit/kv-transport.test.ts; here a request that hangs is ended by `send`.
    expect(await me(service.url, token)).toMatchObject({ status: 200, body });
    expect(await me(service.url, tokenFor(service.idp, `${id}_new`))).toMatchObject({ status: 200 });
    for (let request = 0; request < 5; request += 1) {
      expect(await me(service.url, token)).toMatchObject({ status: 200, body });
    }
    const lines = () => count('cache skipped') - skipped;
    await expect.poll(lines, { message: 'given up' }).toBe(1);
    for (let user = 0; user < 12; user += 1) {
      const { status, headers } = await me(service.url, tokenFor(service.idp, `${id}_${user}`));
      expect({ status, timing: headers.get('server-timing') }).toEqual({
        status: 200,
        timing: expect.stringContaining('cache;desc=bypass'),
      });
    }
    expect(lines(), 'no further line in the log').toBe(1);
  });

  test('garbage that is shaped like an answer is a miss', async () => {
    odd(json(200, '[{"result":{"a":1}}]'))();
    expect(await cacheOf('user_shaped')).toBe('miss');
  });
});

test('a value of the wrong type under our key is a miss and no outage, however often it is met', async () => {
  odd(json(200, '[{"error":"WRONGTYPE Operation against a key holding the wrong kind of value"}]'))();
  for (let request = 0; request < 8; request += 1) expect(await cacheOf('user_wrong_type')).toBe('miss');
});

test('the log has one line when the cache is given up and one when it is back, not one a request', async () => {
  const before = { skipped: count('cache skipped'), back: count('cache in use again') };
  await service.kv.proxy.treat('refuse');
  for (let request = 0; request < 20; request += 1) await me(service.url, tokenFor(service.idp, 'user_log'));
  expect(count('cache skipped') - before.skipped).toBe(1);
  await service.kv.proxy.treat('forward');
  await recovers();
  expect(count('cache in use again') - before.back).toBe(1);
});

test('The cache stays out of use while its quota is exhausted, although it responds to PING', async () => {
  let commands = 0;
  odd(async (request, response) => {
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
  // Only probes reach the store while it is out of use.
  await expect.poll(async () => [await cacheOfOneUser(), commands > 1]).toEqual(['bypass', true]);
  expect(count('cache in use again') - before.back).toBe(0);
});

test('a burst of time-outs of calls that were under way together is no outage', async () => {
  await service.kv.proxy.treat('black-hole');
  // Several times what opens the breaker, and few enough to be under way together on a slow machine.
  const burst = Array.from({ length: 25 }, (_, index) => cacheOf(`user_together_${index}`));
  expect(new Set(await Promise.all(burst))).toEqual(new Set(['bypass']));
  await service.kv.proxy.treat('reset');
  await service.kv.proxy.treat('forward');
  expect(await cacheOf('user_after_burst')).toBe('miss');
});
