import { createClient } from '@vercel/kv';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { memoryEngine } from '../../dev/kv/memory';
import { redisEngine } from '../../dev/kv/redis';
import {
  CommandError,
  type KvEngine,
  type KvServer,
  type KvServerOptions,
  startKvServer,
} from '../../dev/kv/server';
import { hasRedis, startRedis, type TestRedis } from '../harness/parts/redis';
import { stopAfterTest } from '../vitest/stop-after-all';

const token = 'a-token-of-this-test';

/** As the service sets its client up: no deserialisation, no retries. */
const clientOf = ({ url }: KvServer, withToken = token) =>
  createClient({ url, token: withToken, automaticDeserialization: false, retry: { retries: 0 } });

const serve = async (engine: KvEngine, onCommand: KvServerOptions['onCommand'] = () => {}) =>
  stopAfterTest(await startKvServer({ token, engine, onCommand }));

const send = (server: KvServer, target: string, init: RequestInit = {}) =>
  fetch(`${server.url}${target}`, { headers: { authorization: `Bearer ${token}` }, ...init });

const post = (server: KvServer, target: string, body: unknown) =>
  send(server, target, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });

describe('over memory', () => behavesLikeRedis(memoryEngine));

const redis = hasRedis();

describe.skipIf(!redis)(redis ? 'over Redis' : 'over Redis (NOT RUN: no redis-server on PATH)', () => {
  let store: TestRedis;
  beforeAll(async () => {
    store = await startRedis();
  });
  afterAll(() => store.stop());
  behavesLikeRedis(() => redisEngine(store.url));

  test('a Redis that went away is a 503 within the bound, and one that came back is used again', async () => {
    const first = await startRedis();
    const server = await serve(redisEngine(first.url));
    expect((await post(server, '/', ['PING'])).status).toBe(200);
    await first.stop();
    expect((await post(server, '/', ['PING'])).status).toBe(503);
    expect((await post(server, '/pipeline', [['PING']])).status).toBe(503);
    expect((await post(server, '/multi-exec', [['PING']])).status).toBe(503);
    stopAfterTest(await startRedis(first.port));
    const isBack = async () => (await post(server, '/', ['PING'])).status === 200;
    await expect.poll(isBack).toBe(true);
  });
});

/** What the real client sees must not depend on what answers. */
function behavesLikeRedis(newEngine: () => KvEngine) {
  let server: KvServer;
  let kv: ReturnType<typeof clientOf>;
  beforeEach(async () => {
    server = await startKvServer({ token, engine: newEngine() });
    kv = clientOf(server);
    await kv.flushall();
    return () => server.stop();
  });

  test.each(['plain', '', '123', 'true', 'null', 'OK', '"quoted"', 'Zoë 🦊 \u0000 \r\n', '{"a":1}'])(
    'the value %j comes back as it was stored',
    async (value) => {
      expect(await kv.set('key:ü/1', value)).toBe('OK');
      expect(await kv.get('key:ü/1')).toBe(value);
      expect(await kv.mget('key:ü/1', 'absent')).toEqual([value, null]);
    },
  );

  test('an absent key is null', async () => {
    expect(await kv.get('absent')).toBeNull();
  });

  test('commands of the same moment share one request and keep their own answers', async () => {
    const answers = await Promise.all([kv.set('a', '1'), kv.get('b'), kv.set('b', '2'), kv.get('a')]);
    expect(answers.filter((answer) => answer === 'OK')).toHaveLength(2);
    expect(await Promise.all([kv.get('a'), kv.get('b')])).toEqual(['1', '2']);
  });

  test('SET with an expiry keeps it, without one drops it, with KEEPTTL leaves it', async () => {
    await kv.set('key', 'value', { ex: 600 });
    expect(await kv.ttl('key')).toBeGreaterThan(590);
    expect(await kv.ttl('key')).toBeLessThanOrEqual(600);
    await kv.set('key', 'other', { keepTtl: true });
    expect(await kv.ttl('key')).toBeGreaterThan(590);
    await kv.set('key', 'last');
    expect(await kv.ttl('key')).toBe(-1);
    await kv.set('key', 'value', { px: 600_000 });
    expect(await kv.pttl('key')).toBeGreaterThan(590_000);
    const soon = Math.floor(Date.now() / 1000) + 600;
    await kv.set('key', 'value', { exat: soon });
    expect(await kv.pttl('key')).toBeGreaterThan(590_000);
    await kv.set('key', 'value', { pxat: soon * 1000 });
    expect(await kv.pttl('key')).toBeGreaterThan(590_000);
    await kv.set('key', 'value', { exat: soon - 1_000 });
    expect(await kv.exists('key')).toBe(0);
    expect(await kv.ttl('key')).toBe(-2);
    expect(await kv.pttl('key')).toBe(-2);
  });

  test('a key is gone once its time is over', async () => {
    await kv.set('key', 'value', { px: 30 });
    await expect.poll(async () => (await kv.get('key')) === null).toBe(true);
    expect(await kv.dbsize()).toBe(0);
  });

  test('NX keeps what is there, XX needs something there, GET answers the old value', async () => {
    expect(await kv.set('key', 'no', { xx: true })).toBeNull();
    expect(await kv.set('key', 'first', { nx: true })).toBe('OK');
    expect(await kv.set('key', 'second', { nx: true })).toBeNull();
    expect(await kv.set('key', 'third', { xx: true, get: true })).toBe('first');
    expect(await kv.set('key', 'fourth', { get: true, ex: 60 })).toBe('third');
    expect(await kv.get('key')).toBe('fourth');
  });

  test('EXPIRE sets the time to live of a key that exists, and a negative one deletes it', async () => {
    expect(await kv.expire('key', 60)).toBe(0);
    await kv.set('key', 'value');
    expect(await kv.expire('key', 60)).toBe(1);
    expect(await kv.ttl('key')).toBeGreaterThan(50);
    expect(await kv.expire('key', -1)).toBe(1);
    expect(await kv.exists('key')).toBe(0);
  });

  test('INCR counts from nothing, keeps the expiry, and refuses what is no integer', async () => {
    expect(await kv.incr('counter')).toBe(1);
    await kv.expire('counter', 60);
    expect(await kv.incr('counter')).toBe(2);
    expect(await kv.ttl('counter')).toBeGreaterThan(50);
    await kv.set('counter', 'text');
    await expect(kv.incr('counter')).rejects.toThrow('ERR value is not an integer or out of range');
  });

  test('DEL and EXISTS count what was there; DBSIZE and FLUSHALL see everything', async () => {
    await Promise.all([kv.set('a', '1'), kv.set('b', '2'), kv.set('c', '3')]);
    expect(await kv.exists('a', 'b', 'absent', 'a')).toBe(3);
    expect(await kv.del('a', 'absent')).toBe(1);
    expect(await kv.dbsize()).toBe(2);
    await kv.flushall();
    expect(await kv.dbsize()).toBe(0);
  });

  test('PING and ECHO answer what they were given', async () => {
    expect(await kv.ping()).toBe('PONG');
    expect(await kv.echo('hello')).toBe('hello');
  });

  test('a transaction answers each command, also those that fail', async () => {
    await kv.set('text', 'x');
    const answers = await post(server, '/multi-exec', [
      ['SET', 'a', 1],
      ['INCR', 'text'],
      ['INCR', 'a'],
    ]);
    expect(answers.status).toBe(200);
    expect(await answers.json()).toEqual([
      { result: 'OK' },
      { error: 'ERR value is not an integer or out of range' },
      { result: 2 },
    ]);
    expect(await kv.multi().set('b', '1').get('b').exec()).toEqual(['OK', '1']);
  });

  test('a transaction with an unknown command changes nothing', async () => {
    const answers = await post(server, '/multi-exec', [['SET', 'a', '1'], ['NONSENSE']]);
    expect(answers.status).toBe(400);
    expect(await answers.json()).toEqual({ error: expect.stringMatching(/^EXECABORT /) });
    expect(await kv.get('a')).toBeNull();
  });

  test('in a pipeline one wrong command spoils no other', async () => {
    const answers = await post(server, '/pipeline', [['SET', 'a', '1'], ['GET'], ['get', 'a']]);
    expect(answers.status).toBe(200);
    expect(await answers.json()).toEqual([
      { result: 'OK' },
      { error: "ERR wrong number of arguments for 'get' command" },
      { result: '1' },
    ]);
  });

  test.each([
    [['GET'], "ERR wrong number of arguments for 'get' command"],
    [['NONSENSE'], 'ERR unknown command'],
    [['SET', 'a', '1', 'EX', '0'], "ERR invalid expire time in 'set' command"],
    [['SET', 'a', '1', 'EX', '1.5'], 'ERR value is not an integer or out of range'],
    [['SET', 'a', '1', 'EX'], 'ERR syntax error'],
    [['SET', 'a', '1', 'EX', '1', 'PX', '1'], 'ERR syntax error'],
    [['SET', 'a', '1', 'NX', 'XX'], 'ERR syntax error'],
    [['SET', 'a', '1', 'SOON'], 'ERR syntax error'],
    [['EXPIRE', 'a', 'x'], 'ERR value is not an integer or out of range'],
  ])('%j is a 400 with the words of Redis', async (command, words) => {
    await kv.set('a', '0');
    const answer = await post(server, '/', command);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error: expect.stringContaining(words) });
    expect(await kv.get('a')).toBe('0');
  });

  test('a command may be spelled in the path, its last word in the body', async () => {
    expect(await (await send(server, '/set/some%2Fkey/a%20value?EX=100')).json()).toEqual({ result: 'OK' });
    expect(await kv.ttl('some/key')).toBeGreaterThan(90);
    expect(await (await send(server, '/get/some%2Fkey')).json()).toEqual({ result: 'a value' });
    expect(await (await post(server, '/set/body', 'from the body')).json()).toEqual({ result: 'OK' });
    expect(await kv.get('body')).toBe('from the body');
  });
}

describe('at its door', () => {
  test.each([
    ['none', undefined],
    ['a wrong one', 'Bearer wrong'],
    ['a prefix', `Bearer ${token.slice(0, -1)}`],
    ['more than it', `Bearer ${token}x`],
    ['another scheme', `Basic ${token}`],
  ])('every path is a 401 without the token, and runs nothing: %s', async (_name, authorization) => {
    const seen = vi.fn();
    const server = await serve(memoryEngine(), seen);
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
    for (const target of ['/', '/pipeline', '/multi-exec', '/get/key', '/nowhere']) {
      const answer = await send(server, target, { method: 'POST', headers, body: '[["SET","a","1"]]' });
      expect(answer.status).toBe(401);
      expect(await answer.json()).toEqual({ error: expect.stringContaining('auth token') });
    }
    expect(seen).not.toHaveBeenCalled();
    await expect(clientOf(server, 'wrong').get('key')).rejects.toThrow('WRONGPASS');
  });

  test.each([
    ['/', ''],
    ['/', 'nonsense'],
    ['/', '[]'],
    ['/', '{}'],
    ['/', '["GET", null]'],
    ['/', '["SET", "a", {"b": 1}]'],
    ['/pipeline', '[]'],
    ['/pipeline', '["GET", "a"]'],
    ['/pipeline', '[[]]'],
    ['/multi-exec', 'null'],
    ['/get/%E0%A4%A', ''],
  ])('a request that holds no command is a 400: %s %s', async (target, body) => {
    const server = await serve(memoryEngine());
    const answer = await post(server, target, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toEqual({ error: expect.stringMatching(/^ERR /) });
  });

  test.each(['/', '/pipeline', '/multi-exec'])('GET %s is a 404', async (target) => {
    const server = await serve(memoryEngine());
    expect((await send(server, target)).status).toBe(404);
  });

  test('another method is a 405', async () => {
    const server = await serve(memoryEngine());
    expect((await send(server, '/get/key', { method: 'DELETE' })).status).toBe(405);
  });

  test('a body of 1 MiB is taken, a larger one is a 413 and runs nothing', async () => {
    const seen = vi.fn();
    const server = await serve(memoryEngine(), seen);
    const frame = JSON.stringify(['SET', 'key', '']).length;
    const filling = 'x'.repeat(1024 * 1024 - frame);
    expect((await post(server, '/', ['SET', 'key', filling])).status).toBe(200);
    expect((await post(server, '/', ['SET', 'key', `${filling}x`])).status).toBe(413);
    expect(seen).toHaveBeenCalledTimes(1);
  });

  test('strings go out in base64 when asked for, numbers, null and OK as they are', async () => {
    const server = await serve(memoryEngine());
    const headers = { authorization: `Bearer ${token}`, 'upstash-encoding': 'base64' };
    const body = JSON.stringify([
      ['SET', 'a', '1'],
      ['GET', 'a'],
      ['MGET', 'a', 'b'],
      ['TTL', 'a'],
      ['GET', 'b'],
    ]);
    const answers = await send(server, '/pipeline', { method: 'POST', headers, body });
    const one = Buffer.from('1').toString('base64');
    expect(await answers.json()).toEqual([
      { result: 'OK' },
      { result: one },
      { result: [one, null] },
      { result: -1 },
      { result: null },
    ]);
  });

  test('every command is seen, with its arguments', async () => {
    const seen: string[] = [];
    const server = await serve(memoryEngine(), (command, args) => seen.push([command, ...args].join(' ')));
    await post(server, '/', ['SET', 'a', 1]);
    await post(server, '/pipeline', [
      ['GET', 'a'],
      ['TTL', 'a'],
    ]);
    await post(server, '/multi-exec', [['DEL', 'a']]);
    await send(server, '/get/a');
    expect(seen).toEqual(['SET a 1', 'GET a', 'TTL a', 'DEL a', 'get a']);
  });

  test('an engine that fails is a 503 that tells nothing of the cause, a command that fails a 400', async () => {
    const fail = async () => {
      throw new Error('secret cause');
    };
    const server = await serve({ call: fail, transaction: fail, close: async () => {} });
    for (const [target, body] of [
      ['/', ['PING']],
      ['/pipeline', [['PING']]],
      ['/multi-exec', [['PING']]],
    ] as const) {
      const answer = await post(server, target, body);
      expect(answer.status).toBe(503);
      expect(await answer.text()).not.toContain('secret');
    }
    const refuse = async () => {
      throw new CommandError('ERR no');
    };
    const refusing = await serve({ call: refuse, transaction: refuse, close: async () => {} });
    expect((await post(refusing, '/', ['PING'])).status).toBe(400);
  });

  test('it listens on loopback only, and on a taken port rejects', async () => {
    const server = await serve(memoryEngine());
    const port = Number(new URL(server.url).port);
    expect(new URL(server.url).hostname).toBe('127.0.0.1');
    await expect(startKvServer({ token, port, engine: memoryEngine() })).rejects.toThrow('EADDRINUSE');
  });

  test('stop ends a request under way and closes the engine', async () => {
    const closed = vi.fn(async () => {});
    let called = () => {};
    const underWay = new Promise<void>((resolve) => {
      called = resolve;
    });
    const never = () => {
      called();
      return new Promise<never>(() => {});
    };
    const server = await serve({ call: never, transaction: never, close: closed });
    const request = expect(post(server, '/', ['PING'])).rejects.toThrow();
    await underWay;
    await Promise.all([server.stop(), server.stop()]);
    await request;
    expect(closed).toHaveBeenCalledTimes(1);
  });
});

describe('the memory engine', () => {
  test('keeps at most 100,000 keys, and drops the one written longest ago', async () => {
    const engine = memoryEngine();
    for (let index = 0; index <= 100_000; index += 1) await engine.call('SET', `key-${index}`, 'value');
    expect(await engine.call('DBSIZE')).toBe(100_000);
    expect(await engine.call('GET', 'key-0')).toBeNull();
    expect(await engine.call('GET', 'key-1')).toBe('value');
  });

  test('expires to the millisecond', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const engine = memoryEngine();
    await engine.call('SET', 'key', 'value', 'EX', '600');
    vi.advanceTimersByTime(599_999);
    expect(await engine.call('GET', 'key')).toBe('value');
    vi.advanceTimersByTime(1);
    expect(await engine.call('GET', 'key')).toBeNull();
  });

  test.each(['constructor', '__proto__', 'toString'])('%s is no command', async (name) => {
    await expect(memoryEngine().call(name)).rejects.toThrow('ERR unknown command');
  });
});
