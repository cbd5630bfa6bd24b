import { createClient } from '@vercel/kv';
import { expect, test, vi } from 'vitest';
import { type KvServer, startKvServer } from '../../dev/kv';
import { stopAfterTest } from '../vitest/stop-after-all';

// The KV server of the local stack has the HTTP interface of Vercel KV. It responds like Redis to the commands of the service.
const token = 'a-token-of-this-test';

const serve = async (call?: (command: string) => Promise<unknown>) =>
  stopAfterTest(await startKvServer({ token, ...(call && { engine: { call } }) }));

const post = (server: KvServer, target: string, body: unknown, authorization = `Bearer ${token}`) =>
  fetch(`${server.url}${target}`, {
    method: 'POST',
    headers: { authorization },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

// With the default options, the client sends pipelines and decodes base64. With the other options, it does neither.
test.each([
  {},
  { automaticDeserialization: false, responseEncoding: false, enableAutoPipelining: false } as const,
])('The KV client sets, reads and deletes values (client options: %j)', async (options) => {
  const server = await serve();
  const kv = createClient({ url: server.url, token, ...options });
  const value = 'Zoë 🦊 \u0000 \r\n "quoted"';
  expect(await kv.ping()).toBe('PONG');
  expect(await kv.set('key:ü/1', value, { ex: 600, nx: true })).toBe('OK');
  expect(await kv.set('key:ü/1', 'other', { ex: 5, nx: true })).toBeNull();
  expect(await Promise.all([kv.get('key:ü/1'), kv.get('absent')])).toEqual([value, null]);
  await kv.set('key:ü/1', 'OK');
  expect(await kv.get('key:ü/1')).toBe('OK');
  expect(await kv.del('key:ü/1', 'absent')).toBe(1);
  expect(await kv.get('key:ü/1')).toBeNull();
});

test('A command of a pipeline that fails does not prevent the other commands', async () => {
  const server = await serve();
  const response = await post(server, '/pipeline', [['SET', 'a', 1], ['NOTHING'], ['GET', 'a']]);
  expect([response.status, await response.json()]).toEqual([
    200,
    [{ result: 'OK' }, { error: expect.stringMatching(/^ERR unknown command/) }, { result: '1' }],
  ]);
  expect((await post(server, '/', ['SET', 'a', '1', 'SOON'])).status).toBe(400);
});

test.each([
  ['a wrong token', 401, '["SET","a","1"]', 'Basic wrong'],
  ['no JSON', 400, 'nonsense', undefined],
  ['a command that is not a list of words', 400, '["GET", null]', undefined],
])('A KV request with %s gets a %i, and no command runs', async (_name, status, body, authorization) => {
  const seen = vi.fn();
  const server = await serve(seen);
  expect((await post(server, '/', body, authorization)).status).toBe(status);
  expect(seen).not.toHaveBeenCalled();
});

test('If its engine fails, the KV server responds with 503 without the message of the engine', async () => {
  const server = await serve(() => Promise.reject(new Error('secret cause')));
  const response = await post(server, '/', ['PING']);
  expect([response.status, await response.text()]).toEqual([503, expect.not.stringContaining('secret')]);
});
