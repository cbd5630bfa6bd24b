import { notFound } from 'next/navigation';
import { NextRequest } from 'next/server';
import { beforeEach, expect, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { enableTelemetry } from '#lib/base/telemetry';
import { HttpError } from '#lib/http/error';
import { addLogFields } from '#lib/http/request-log';
import { json, type RouteContext, type RouteHandler, route } from '#lib/http/route';

for (const level of ['debug', 'info', 'error'] as const) vi.spyOn(log, level).mockReturnValue();

beforeEach(() => {
  vi.clearAllMocks();
});

const call = (handler: RouteHandler<RouteContext>, path = '/x', params = {}, headers = {}) =>
  handler(new NextRequest(`http://localhost:3000${path}`, { headers }), { params: Promise.resolve(params) });
const throwing = (error: unknown) =>
  route(() => {
    throw error;
  });
const logged = () => vi.mocked(log.info).mock.calls[0]?.[0];

test.each([
  ['/users/v1/me', {}, {}, 'GET /users/v1/me'],
  ['/notes/v1/ada%40example.com', { noteId: 'ada@example.com' }, {}, 'GET /notes/v1/[noteId]'],
  ['/files/v1/a/b', { path: ['a', 'b'] }, {}, 'GET /files/v1/[path]/[path]'],
  ['/users/v1/ada@example.com', {}, { name: 'unknown' }, 'GET unknown'],
])(
  'The log contains the pattern or the name of the route instead of the values of its parameters: %s',
  async (path, params, options, pattern) => {
    const handler = route(() => json({}), options);
    await call(handler, path, params);
    expect(logged()).toMatchObject({ route: pattern });
  },
);

test('A quiet route logs at the level debug unless its handler throws', async () => {
  await call(route(() => json({}, 503), { quiet: true }));
  expect([vi.mocked(log.debug).mock.calls.length, vi.mocked(log.error).mock.calls.length]).toEqual([1, 0]);
  const broken = () => {
    throw new Error('broken');
  };
  await call(route(broken, { quiet: true }));
  expect(log.error).toHaveBeenCalledWith(expect.objectContaining({ status: 500 }), 'request');
});

const INTERNAL = 'Internal Server Error';
test.each([
  [new HttpError(413, 'Payload too large'), 413, 'Payload too large'],
  [new Error('connect to 10.0.0.1'), 500, INTERNAL],
  ['text', 500, INTERNAL],
  [undefined, 500, INTERNAL],
  [null, 500, INTERNAL],
])(
  'An HttpError becomes a response with its status and message, any other value a 500 without details: %s',
  async (thrown, status, message) => {
    const response = await call(throwing(thrown));
    expect([response.status, await response.json()]).toEqual([status, { message }]);
    expect(JSON.stringify(vi.mocked(log.error).mock.calls)).not.toContain('10.0.0.1');
  },
);

test('A response that cannot be sent becomes a 500', async () => {
  const response = await call(route(() => Response.error()));
  expect([response.status, await response.json()]).toEqual([500, { message: 'Internal Server Error' }]);
});

test('A route passes the control-flow errors of Next.js through', async () => {
  await expect(call(route(() => notFound()))).rejects.toThrow('NEXT_HTTP_ERROR_FALLBACK;404');
});

test('A response keeps its own headers and gets `cache-control: no-store` and the request id of the client', async () => {
  const own = { 'x-own': '1', 'cache-control': 'public' };
  const handler = route(() => new Response('text', { status: 201, headers: own }));
  const response = await call(handler, '/x', {}, { 'x-request-id': 'req-1' });
  expect([response.status, await response.text()]).toEqual([201, 'text']);
  const expected = { 'x-own': '1', 'cache-control': 'no-store', 'x-request-id': 'req-1' };
  expect(Object.fromEntries(response.headers)).toMatchObject(expected);
  expect(response.headers.has('server-timing')).toBe(false);
});

test('The header `server-timing` and the log contain the outcomes of the cache lookup and of registrations', async () => {
  const handler = route(() => {
    addLogFields({ cache: 'miss', caller: 'created', reason: 'expired' });
    addLogFields({ registered: 'existing' });
    return json({});
  });
  const { headers } = await call(handler);
  expect(headers.get('server-timing')).toBe('cache;desc=miss, caller;desc=created, registered;desc=existing');
  expect(logged()).toEqual({
    requestId: headers.get('x-request-id'),
    route: 'GET /x',
    status: 200,
    ms: expect.any(Number),
    cache: 'miss',
    caller: 'created',
    registered: 'existing',
    reason: 'expired',
  });
});

test('Telemetry gets the method, route, status, duration and log fields of a request', async () => {
  const recordRequest = vi.fn();
  const withRequest = (_headers: Headers, work: () => Promise<unknown>) => work();
  enableTelemetry(Object.create({ withRequest, recordRequest }));
  const handler = route(() => {
    addLogFields({ cache: 'hit' });
    return json({}, 404);
  });
  await call(handler, '/notes/v1/42', { noteId: '42' });
  expect(recordRequest).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({
      method: 'GET',
      route: '/notes/v1/[noteId]',
      status: 404,
      ms: expect.any(Number),
      fields: { cache: 'hit' },
    }),
  );
});
