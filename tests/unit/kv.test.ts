import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { createKv, withKv } from '#lib/storage/kv';
import { listen } from '../../dev/system/listen';
import { stopAfterAll } from '../vitest/stop-after-all';

/** A request that the KV store of this test has received. */
interface StoreRequest {
  readonly commands: unknown[];
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Responds to each request of the KV client. By default, the result of a command is its last argument. */
let respond: (storeRequest: StoreRequest) => void;
const storeRequests: StoreRequest[] = [];
const server = createServer(async (request, response) => {
  const storeRequest = { commands: JSON.parse(await text(request)), request, response };
  storeRequests.push(storeRequest);
  respond(storeRequest);
});
const url = `http://127.0.0.1:${await listen(server)}/base/`;
stopAfterAll({ stop: () => server.closeAllConnections() });
stopAfterAll(server);

const echo = ({ commands, response }: StoreRequest) =>
  response.end(JSON.stringify(commands.map((command) => ({ result: [command].flat().at(-1) }))));
const kv = createKv({ url, token: 'the-token' }, 20_000);
const impatient = createKv({ url, token: 'the-token' }, 50);

beforeEach(() => {
  respond = echo;
  storeRequests.length = 0;
});

test('Commands of one event loop iteration share one authorized request, and each command gets its own result', async () => {
  const calls = [kv.get('one'), kv.get('two'), kv.set('key', 'three', { ex: 600 })];
  expect(await Promise.all(calls)).toEqual(['one', 'two', 600]);
  expect(storeRequests.map(({ commands }) => commands)).toEqual([
    [
      ['get', 'one'],
      ['get', 'two'],
      ['set', 'key', 'three', 'ex', 600],
    ],
  ]);
  const { url: path, headers } = storeRequests[0]?.request ?? { url: '', headers: {} };
  expect([path, headers.authorization]).toEqual(['/base/pipeline', 'Bearer the-token']);
  // It sends nothing of the request of a client, such as its trace.
  const names = ['authorization', 'connection', 'content-length', 'content-type', 'host'];
  expect(Object.keys(headers).toSorted()).toEqual(names);
});

test('Equal reads share a command only before it is sent, and other equal commands never do', async () => {
  const responses: ServerResponse[] = [];
  respond = ({ response }) => responses.push(response);
  const calls = [kv.get('one'), kv.set('one', '1'), kv.get('one'), kv.get('two'), kv.set('one', '1')];
  await vi.waitUntil(() => responses.length === 1);
  const later = kv.get('one');
  await vi.waitUntil(() => responses.length === 2);
  responses[0]?.end('[{"result":"old"},{"result":"OK"},{"result":"2"},{"result":"OK"}]');
  responses[1]?.end('[{"result":"new"}]');
  expect(await Promise.all([...calls, later])).toEqual(['old', 'OK', 'old', '2', 'OK', 'new']);
  const set = ['set', 'one', '1'];
  expect(storeRequests.map(({ commands }) => commands)).toEqual([
    [['get', 'one'], set, ['get', 'two'], set],
    [['get', 'one']],
  ]);
});

test.each(['123', 'true', 'null', '"quoted"', '{"a":1}', '', 'ünïcode ☃', 'OK', null])(
  'The KV client returns a string or null unchanged: %j',
  async (result) => {
    respond = ({ response }) => response.end(JSON.stringify([{ result }]));
    expect(await kv.get('key')).toBe(result);
  },
);

test('A failed command rejects with the error of the store and does not affect the other commands of the request', async () => {
  respond = ({ response }) => response.end('[{"error":"WRONGTYPE of that key"},{"result":"two"}]');
  const [one, two] = await Promise.allSettled([kv.get('one'), kv.get('two')]);
  expect(one).toMatchObject({ reason: { message: expect.stringContaining('WRONGTYPE of that key') } });
  expect(two).toMatchObject({ value: 'two' });
});

test.each<[string, (storeRequest: StoreRequest) => void]>([
  ['status 503', ({ response }) => response.writeHead(503).end('[{"result":"x"}]')],
  ['status 401', ({ response }) => response.writeHead(401).end('{"error":"WRONGPASS"}')],
  ['a body that is not JSON', ({ response }) => response.end('<html>')],
  [
    'an object instead of a list',
    ({ response }) => response.end('{"error":"ERR max requests limit exceeded"}'),
  ],
  ['too few results', ({ response }) => response.end('[]')],
  ['a body above 1 MiB', ({ response }) => response.end(`[{"result":"${'x'.repeat(1024 * 1024)}"}]`)],
  ['a connection reset', ({ request }) => request.socket.resetAndDestroy()],
  [
    'an incomplete body',
    ({ request, response }) => response.write('[{"resu', () => request.socket.resetAndDestroy()),
  ],
])(
  'After an invalid or missing response, a command rejects and is not sent again: %s',
  async (_what, behave) => {
    respond = behave;
    await expect(kv.get('key')).rejects.toThrow();
    expect(storeRequests).toHaveLength(1);
  },
);

test('A command rejects if the store does not respond in time, or not completely', async () => {
  respond = () => undefined;
  await expect(impatient.get('key')).rejects.toThrow('did not respond');
  respond = ({ response }) => response.write('[{"result":');
  await expect(impatient.get('key')).rejects.toThrow('did not respond');
});

test('A command rejects if the connection is refused', async () => {
  const unused = createKv({ url: 'http://127.0.0.1:1', token: 'x' });
  await expect(unused.get('key')).rejects.toThrow('ECONNREFUSED');
});

test('Sequential commands use the same connection', async () => {
  for (let call = 0; call < 5; call += 1) await kv.get('key');
  expect(new Set(storeRequests.map(({ request }) => request.socket)).size).toBe(1);
});

test('After five consecutive requests have failed, commands are rejected without a request, except for one request a second, until one succeeds', async () => {
  for (const [name, value] of [
    ['URL', url],
    ['TOKEN', 'x'],
  ])
    vi.stubEnv(`KV_REST_API_${name}`, value);
  const [warn, info] = [vi.spyOn(log, 'warn').mockReturnValue(), vi.spyOn(log, 'info').mockReturnValue()];
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => {
    vi.useRealTimers();
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });
  const get = () =>
    withKv((client) => client.get('key')).then(
      (value) => value,
      ({ message }: Error) => message,
    );
  const isOpen = expect.stringContaining('circuit breaker is open');
  const drop = ({ request }: StoreRequest) => request.socket.resetAndDestroy();
  const overQuota = ({ commands, response }: StoreRequest) =>
    response.end(JSON.stringify(commands.map(() => ({ error: 'ERR max requests limit exceeded' }))));
  const tenCommands = () => Promise.all(Array.from({ length: 10 }, get));
  // One error among the replies is not a failure of the request.
  respond = ({ commands, response }) =>
    response.end(
      JSON.stringify(commands.map((_, index) => (index === 3 ? { error: 'ERR' } : { result: 'x' }))),
    );
  for (let attempt = 0; attempt < 6; attempt += 1) await tenCommands();
  expect([warn.mock.calls.length, storeRequests.length]).toEqual([0, 6]);
  for (const [outages, fail, logged] of [
    [1, drop, { code: 'ECONNRESET' }],
    [2, overQuota, { name: 'UpstashError' }],
  ] as const) {
    storeRequests.length = 0;
    respond = fail;
    // Ten commands of one request are one failure.
    for (let attempt = 1; attempt < 5; attempt += 1) await tenCommands();
    respond = echo;
    expect(await get()).toBe('key');
    respond = fail;
    for (let attempt = 1; attempt < 5; attempt += 1) await get();
    expect(warn).toHaveBeenCalledTimes(outages - 1);
    await get();
    expect(warn).toHaveBeenCalledTimes(outages);
    expect(warn).toHaveBeenLastCalledWith({ error: expect.objectContaining(logged) }, 'cache skipped');
    expect(storeRequests).toHaveLength(10);
    expect(await get()).toEqual(isOpen);
    vi.advanceTimersByTime(1_001);
    await get();
    expect(await get()).toEqual(isOpen);
    expect(storeRequests).toHaveLength(11);
    vi.advanceTimersByTime(1_001);
    respond = echo;
    expect([await get(), await get()]).toEqual(['key', 'key']);
    expect(info).toHaveBeenCalledTimes(outages);
    expect(info).toHaveBeenLastCalledWith('cache in use again');
  }
});
