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
import { hasRedis, startRedis, type TestRedis } from '../harness/dependencies/redis';
import { stopAfterTest } from '../vitest/stop-after-all';

// The KV server of the local stack has the HTTP interface of Vercel KV. The server passes each command to an engine, which runs
// the command in memory or in Redis.
const token = 'a-token-of-this-test';

/** Creates a client with the options of the service: no deserialization and no retries. */
const createKvClient = ({ url }: KvServer, withToken = token) =>
  createClient({ url, token: withToken, automaticDeserialization: false, retry: { retries: 0 } });

const serve = async (engine: KvEngine, onCommand: KvServerOptions['onCommand'] = () => {}) =>
  stopAfterTest(await startKvServer({ token, engine, onCommand }));

const send = (server: KvServer, target: string, init: RequestInit = {}) =>
  fetch(`${server.url}${target}`, { headers: { authorization: `Bearer ${token}` }, ...init });

const post = (server: KvServer, target: string, body: unknown) =>
  send(server, target, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });

describe('The KV server over the memory engine', () => behavesLikeRedis(memoryEngine));

const redis = hasRedis();

describe.skipIf(!redis)(
  redis ? 'The KV server over Redis' : 'The KV server over Redis (NOT RUN: no redis-server on PATH)',
  () => {
    let store: TestRedis;
    beforeAll(async () => {
      store = await startRedis();
    });
    afterAll(() => store.stop());
    behavesLikeRedis(() => redisEngine(store.url));

    test('The KV server responds with 503 while Redis is down, and reconnects when Redis has restarted', async () => {
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
  },
);

/** Checks that the KV server responds like Redis. Runs with each engine. */
function behavesLikeRedis(newEngine: () => KvEngine) {
  let server: KvServer;
  let kv: ReturnType<typeof createKvClient>;
  beforeEach(async () => {
    server = await startKvServer({ token, engine: newEngine() });
    kv = createKvClient(server);
    await kv.flushall();
    return () => server.stop();
  });

  test.each(['plain', '', '123', 'true', 'null', 'OK', '"quoted"', 'Zoë 🦊 \u0000 \r\n', '{"a":1}'])(
    'GET returns the stored value %j unchanged',
    async (value) => {
      expect(await kv.set('key:ü/1', value)).toBe('OK');
      expect(await kv.get('key:ü/1')).toBe(value);
      expect(await kv.mget('key:ü/1', 'absent')).toEqual([value, null]);
    },
  );

  test('GET returns null for a missing key', async () => {
    expect(await kv.get('absent')).toBeNull();
  });

  test('Each of several concurrent KV commands gets its own reply', async () => {
    const replies = await Promise.all([kv.set('a', '1'), kv.get('b'), kv.set('b', '2'), kv.get('a')]);
    expect(replies.filter((reply) => reply === 'OK')).toHaveLength(2);
    expect(await Promise.all([kv.get('a'), kv.get('b')])).toEqual(['1', '2']);
  });

  test('SET sets the expiry of a key with EX, PX, EXAT or PXAT, keeps the expiry with KEEPTTL and otherwise removes the expiry', async () => {
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

  test('A key of the KV server disappears when it expires', async () => {
    await kv.set('key', 'value', { px: 30 });
    await expect.poll(async () => (await kv.get('key')) === null).toBe(true);
    expect(await kv.dbsize()).toBe(0);
  });

  test('SET with NX keeps an existing value, SET with XX requires an existing value, and SET with GET returns the old value', async () => {
    expect(await kv.set('key', 'no', { xx: true })).toBeNull();
    expect(await kv.set('key', 'first', { nx: true })).toBe('OK');
    expect(await kv.set('key', 'second', { nx: true })).toBeNull();
    expect(await kv.set('key', 'third', { xx: true, get: true })).toBe('first');
    expect(await kv.set('key', 'fourth', { get: true, ex: 60 })).toBe('third');
    expect(await kv.get('key')).toBe('fourth');
  });

  test('EXPIRE sets the time to live of an existing key, and a negative time deletes the key', async () => {
    expect(await kv.expire('key', 60)).toBe(0);
    await kv.set('key', 'value');
    expect(await kv.expire('key', 60)).toBe(1);
    expect(await kv.ttl('key')).toBeGreaterThan(50);
    expect(await kv.expire('key', -1)).toBe(1);
    expect(await kv.exists('key')).toBe(0);
  });

  test('INCR starts at 1, keeps the expiry and rejects a value that is not an integer', async () => {
    expect(await kv.incr('counter')).toBe(1);
    await kv.expire('counter', 60);
    expect(await kv.incr('counter')).toBe(2);
    expect(await kv.ttl('counter')).toBeGreaterThan(50);
    await kv.set('counter', 'text');
    await expect(kv.incr('counter')).rejects.toThrow('ERR value is not an integer or out of range');
  });

  test('EXISTS counts the arguments that are existing keys, DEL removes and counts existing keys, DBSIZE counts all keys and FLUSHALL removes all keys', async () => {
    await Promise.all([kv.set('a', '1'), kv.set('b', '2'), kv.set('c', '3')]);
    expect(await kv.exists('a', 'b', 'absent', 'a')).toBe(3);
    expect(await kv.del('a', 'absent')).toBe(1);
    expect(await kv.dbsize()).toBe(2);
    await kv.flushall();
    expect(await kv.dbsize()).toBe(0);
  });

  test('PING returns PONG and ECHO returns its argument', async () => {
    expect(await kv.ping()).toBe('PONG');
    expect(await kv.echo('hello')).toBe('hello');
  });

  test('A KV transaction returns one reply for each command, including failed commands', async () => {
    await kv.set('text', 'x');
    const replies = await post(server, '/multi-exec', [
      ['SET', 'a', 1],
      ['INCR', 'text'],
      ['INCR', 'a'],
    ]);
    expect(replies.status).toBe(200);
    expect(await replies.json()).toEqual([
      { result: 'OK' },
      { error: 'ERR value is not an integer or out of range' },
      { result: 2 },
    ]);
    expect(await kv.multi().set('b', '1').get('b').exec()).toEqual(['OK', '1']);
  });

  test('A KV transaction with an unknown command is discarded', async () => {
    const replies = await post(server, '/multi-exec', [['SET', 'a', '1'], ['NONSENSE']]);
    expect(replies.status).toBe(400);
    expect(await replies.json()).toEqual({ error: expect.stringMatching(/^EXECABORT /) });
    expect(await kv.get('a')).toBeNull();
  });

  test('An invalid command in a KV pipeline does not affect the other commands', async () => {
    const replies = await post(server, '/pipeline', [['SET', 'a', '1'], ['GET'], ['get', 'a']]);
    expect(replies.status).toBe(200);
    expect(await replies.json()).toEqual([
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
  ])('The command %j gets a 400 with the error message of Redis', async (command, message) => {
    await kv.set('a', '0');
    const response = await post(server, '/', command);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: expect.stringContaining(message) });
    expect(await kv.get('a')).toBe('0');
  });

  test('A KV request may contain the command in its path and query, and the last argument in its body', async () => {
    expect(await (await send(server, '/set/some%2Fkey/a%20value?EX=100')).json()).toEqual({ result: 'OK' });
    expect(await kv.ttl('some/key')).toBeGreaterThan(90);
    expect(await (await send(server, '/get/some%2Fkey')).json()).toEqual({ result: 'a value' });
    expect(await (await post(server, '/set/body', 'from the body')).json()).toEqual({ result: 'OK' });
    expect(await kv.get('body')).toBe('from the body');
  });
}

describe('The HTTP interface of the KV server', () => {
  test.each([
    ['no token', undefined],
    ['a wrong token', 'Bearer wrong'],
    ['a prefix of the token', `Bearer ${token.slice(0, -1)}`],
    ['the token and one more character', `Bearer ${token}x`],
    ['the token in the scheme Basic', `Basic ${token}`],
  ])(
    'A request to the KV server with %s gets a 401 on each path, and no command runs',
    async (_name, authorization) => {
      const seen = vi.fn();
      const server = await serve(memoryEngine(), seen);
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      for (const target of ['/', '/pipeline', '/multi-exec', '/get/key', '/nowhere']) {
        const response = await send(server, target, { method: 'POST', headers, body: '[["SET","a","1"]]' });
        expect(response.status).toBe(401);
        expect(await response.json()).toEqual({ error: expect.stringContaining('auth token') });
      }
      expect(seen).not.toHaveBeenCalled();
      await expect(createKvClient(server, 'wrong').get('key')).rejects.toThrow('WRONGPASS');
    },
  );

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
  ])('A request to the KV server without a valid command gets a 400: %s %s', async (target, body) => {
    const server = await serve(memoryEngine());
    const response = await post(server, target, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: expect.stringMatching(/^ERR /) });
  });

  test.each(['/', '/pipeline', '/multi-exec'])('The KV server responds 404 to GET %s', async (target) => {
    const server = await serve(memoryEngine());
    expect((await send(server, target)).status).toBe(404);
  });

  test('The KV server responds 405 to a method other than GET and POST', async () => {
    const server = await serve(memoryEngine());
    expect((await send(server, '/get/key', { method: 'DELETE' })).status).toBe(405);
  });

  test('The KV server accepts a body of 1 MiB and responds to a larger body with 413', async () => {
    const seen = vi.fn();
    const server = await serve(memoryEngine(), seen);
    const frame = JSON.stringify(['SET', 'key', '']).length;
    const filling = 'x'.repeat(1024 * 1024 - frame);
    expect((await post(server, '/', ['SET', 'key', filling])).status).toBe(200);
    expect((await post(server, '/', ['SET', 'key', `${filling}x`])).status).toBe(413);
    expect(seen).toHaveBeenCalledTimes(1);
  });

  test('If a header requests base64, the KV server encodes the strings of its replies, except OK, and leaves numbers and null unchanged', async () => {
    const server = await serve(memoryEngine());
    const headers = { authorization: `Bearer ${token}`, 'upstash-encoding': 'base64' };
    const body = JSON.stringify([
      ['SET', 'a', '1'],
      ['GET', 'a'],
      ['MGET', 'a', 'b'],
      ['TTL', 'a'],
      ['GET', 'b'],
    ]);
    const replies = await send(server, '/pipeline', { method: 'POST', headers, body });
    const one = Buffer.from('1').toString('base64');
    expect(await replies.json()).toEqual([
      { result: 'OK' },
      { result: one },
      { result: [one, null] },
      { result: -1 },
      { result: null },
    ]);
  });

  test('The onCommand callback receives every command with its arguments', async () => {
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

  test('If its engine fails, the KV server responds 503 without the error message of the engine. If a command fails, the KV server responds 400', async () => {
    const fail = async () => {
      throw new Error('secret cause');
    };
    const server = await serve({ call: fail, transaction: fail, close: async () => {} });
    for (const [target, body] of [
      ['/', ['PING']],
      ['/pipeline', [['PING']]],
      ['/multi-exec', [['PING']]],
    ] as const) {
      const response = await post(server, target, body);
      expect(response.status).toBe(503);
      expect(await response.text()).not.toContain('secret');
    }
    const failCommand = async () => {
      throw new CommandError('ERR no');
    };
    const rejecting = await serve({ call: failCommand, transaction: failCommand, close: async () => {} });
    expect((await post(rejecting, '/', ['PING'])).status).toBe(400);
  });

  test('startKvServer() listens only on loopback and rejects if the port is in use', async () => {
    const server = await serve(memoryEngine());
    const port = Number(new URL(server.url).port);
    expect(new URL(server.url).hostname).toBe('127.0.0.1');
    await expect(startKvServer({ token, port, engine: memoryEngine() })).rejects.toThrow('EADDRINUSE');
  });

  test('stop() of the KV server aborts the requests in flight, and closes the engine only once, even if stop() is called twice', async () => {
    const closed = vi.fn(async () => {});
    let called = () => {};
    const inFlight = new Promise<void>((resolve) => {
      called = resolve;
    });
    const never = () => {
      called();
      return new Promise<never>(() => {});
    };
    const server = await serve({ call: never, transaction: never, close: closed });
    const request = expect(post(server, '/', ['PING'])).rejects.toThrow();
    await inFlight;
    await Promise.all([server.stop(), server.stop()]);
    await request;
    expect(closed).toHaveBeenCalledTimes(1);
  });
});

describe('memoryEngine()', () => {
  test('The memory engine keeps at most 100,000 keys and evicts the key that was written longest ago', async () => {
    const engine = memoryEngine();
    for (let index = 0; index <= 100_000; index += 1) await engine.call('SET', `key-${index}`, 'value');
    expect(await engine.call('DBSIZE')).toBe(100_000);
    expect(await engine.call('GET', 'key-0')).toBeNull();
    expect(await engine.call('GET', 'key-1')).toBe('value');
  });

  test('The memory engine expires a key exactly at its expiry time', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const engine = memoryEngine();
    await engine.call('SET', 'key', 'value', 'EX', '600');
    vi.advanceTimersByTime(599_999);
    expect(await engine.call('GET', 'key')).toBe('value');
    vi.advanceTimersByTime(1);
    expect(await engine.call('GET', 'key')).toBeNull();
  });

  test.each(['constructor', '__proto__', 'toString'])(
    'The memory engine rejects the command %s',
    async (name) => {
      await expect(memoryEngine().call(name)).rejects.toThrow('ERR unknown command');
    },
  );
});
