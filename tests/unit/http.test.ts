import { readdirSync } from 'node:fs';
import path from 'node:path';
import { notFound } from 'next/navigation';
import { NextRequest } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { HttpError } from '#lib/http/error';
import {
  json,
  type RouteContext,
  type RouteHandler,
  rejectWith,
  route,
  notFound as routeNotFound,
} from '#lib/http/route';
import { addLogFields, log } from '#lib/log';
import { enableTelemetry, type Telemetry } from '#lib/telemetry/with-span';

vi.mock('#lib/log', async (original) => ({
  ...(await original<typeof import('#lib/log')>()),
  log: { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() },
}));

beforeEach(() => {
  vi.clearAllMocks();
});

const routeContext = { params: Promise.resolve({}) };
const call = (handler: RouteHandler<RouteContext>, path: string, method = 'GET') =>
  handler(new NextRequest(`http://localhost:3000${path}`, { method }), routeContext);

describe('The route in the log', () => {
  /** Returns the log record of the request. Health checks use the level `debug`. */
  const logged = () => [log.info, log.debug].flatMap((each) => vi.mocked(each).mock.calls)[0]?.[0];

  test('The log contains the route pattern instead of the requested path', async () => {
    await call(
      route(() => json({}), '/notes/v1/[noteId]'),
      '/notes/v1/alice@example.com',
    );
    expect(logged()).toMatchObject({ route: 'GET /notes/v1/[noteId]' });
  });

  test.each([
    ['/users/v1/alice@example.com', 'GET /users'],
    ['/alice@example.com', 'GET /'],
  ])(
    'For a route without a pattern, the log contains the first segment of an API path, or only a slash for any other path: %s',
    async (path, name) => {
      await call(
        route(() => json({})),
        path,
      );
      expect(logged()).toMatchObject({ route: name });
    },
  );

  const files = readdirSync('app', { recursive: true, encoding: 'utf8' }).filter(
    (file) => /(?:^|\/)route\.ts$/.test(file) && !file.startsWith('api-not-found'),
  );
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

  test.each(files)('The logged route pattern is the folder of the route file: %s', async (file) => {
    const folder = `/${path.dirname(file)}`;
    const exported = await import(path.resolve('app', file));
    const named = methods.filter((method) => method in exported);
    expect(named).not.toEqual([]);
    for (const method of named) {
      vi.clearAllMocks();
      await call(exported[method], folder, method);
      expect(logged()).toMatchObject({ route: `${method} ${folder}` });
    }
  });
});

test('A route with the option `quiet` logs at a level above debug only if its handler throws', async () => {
  for (const status of [200, 503]) {
    await call(
      route(() => json({}, status), '/x', { quiet: true }),
      '/x',
    );
  }
  expect([log.info, log.warn, log.error].flatMap((each) => vi.mocked(each).mock.calls)).toEqual([]);
  const broken = () => {
    throw new Error('broken');
  };
  await call(route(broken, '/x', { quiet: true }), '/x');
  expect(log.error).toHaveBeenCalledWith(expect.objectContaining({ status: 500 }), 'request');
});

const failing = (error: unknown) =>
  route(() => {
    throw error;
  })(new NextRequest('http://localhost:3000/x'), routeContext);

describe('Failing handlers', () => {
  test('A handler that throws an HttpError causes a response with the status and the message of the error', async () => {
    const response = await failing(new HttpError(413, 'Payload too large'));
    expect(response.status).toBe(413);
    expect(await response.json()).toEqual({ message: 'Payload too large' });
  });

  test.each([new Error('connect to 10.0.0.1'), 'text', undefined, null])(
    'A handler that throws a value other than an HttpError causes a 500 without details: %s',
    async (thrown) => {
      const response = await failing(thrown);
      expect(response.status).toBe(500);
      expect(await response.text()).toBe('{"message":"Internal Server Error"}');
      expect(JSON.stringify(vi.mocked(log.error).mock.calls)).not.toContain('10.0.0.1');
    },
  );

  test('A handler that does not return a response causes a 500 without details', async () => {
    const returning = route(Object.create({ call: () => undefined }).call);
    const response = await returning(new NextRequest('http://localhost:3000/x'), routeContext);
    expect(response.status).toBe(500);
    expect(await response.text()).toBe('{"message":"Internal Server Error"}');
  });

  test('route() passes the control-flow errors of Next.js through', async () => {
    await expect(
      Promise.resolve(route(() => notFound())(new NextRequest('http://localhost:3000/x'), routeContext)),
    ).rejects.toThrow('NEXT_HTTP_ERROR_FALLBACK;404');
  });
});

describe('Responses of a route', () => {
  test('route() sets `x-request-id` to the request id of the client, sets `cache-control: no-store`, and keeps the other headers of a response', async () => {
    const handler = route(
      () => new Response('text', { status: 201, headers: { 'x-own': '1', 'cache-control': 'public' } }),
    );
    const request = new NextRequest('http://localhost:3000/x', { headers: { 'x-request-id': 'req-1' } });
    const response = await handler(request, routeContext);
    expect([response.status, await response.text()]).toEqual([201, 'text']);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-own': '1',
      'cache-control': 'no-store',
      'x-request-id': 'req-1',
    });
    expect(response.headers.has('server-timing')).toBe(false);
  });

  test.each(['a b', 'x'.repeat(65), 'a\u00e9', ''])(
    'A UUID replaces the request id of a client if the id is empty, too long or contains a forbidden character: %j',
    async (id) => {
      const request = new NextRequest('http://localhost:3000/x', { headers: { 'x-request-id': id } });
      const response = await route(() => json({}))(request, routeContext);
      expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    },
  );

  test('The header `server-timing` and the log contain the outcomes of the cache lookup (`cache`) and of registrations (`caller`, `registered`)', async () => {
    const handler = route(() => {
      addLogFields({ cache: 'miss', caller: 'created', reason: 'expired' });
      addLogFields({ registered: 'existing' });
      return json({});
    }, '/x');
    const response = await call(handler, '/x');
    expect(response.headers.get('server-timing')).toBe(
      'cache;desc=miss, caller;desc=created, registered;desc=existing',
    );
    expect(log.info).toHaveBeenCalledExactlyOnceWith(
      {
        requestId: response.headers.get('x-request-id'),
        route: 'GET /x',
        status: 200,
        ms: expect.any(Number),
        cache: 'miss',
        caller: 'created',
        registered: 'existing',
        reason: 'expired',
      },
      'request',
    );
  });

  test.each([
    [499, 'info', false],
    [500, 'error', true],
  ] as const)(
    'A response with the status %i is logged at the level %s (the log line has an error field: %s)',
    async (status, level, hasError) => {
      await call(
        route(() => json({}, status)),
        '/x',
      );
      const [fields] = vi.mocked(log[level]).mock.calls[0] ?? [];
      expect(fields).toMatchObject({ status });
      expect(Object.hasOwn(Object(fields), 'error')).toBe(hasError);
    },
  );

  test('The log line of a failed request contains the name and the message of the error', async () => {
    const broken = () => {
      throw new TypeError('broken');
    };
    await call(route(broken), '/x');
    const error = { name: 'TypeError', message: 'broken' };
    expect(log.error).toHaveBeenCalledWith(
      expect.objectContaining({ error: expect.objectContaining(error) }),
      'request',
    );
    await call(route(Object.create({ call: () => undefined }).call), '/x');
    const noResponse = { message: 'A handler returned no response' };
    expect(log.error).toHaveBeenLastCalledWith(
      expect.objectContaining({ error: expect.objectContaining(noResponse) }),
      'request',
    );
  });

  test('Telemetry records a request with its method, route, status, log fields and duration in seconds', async () => {
    const recordRequest = vi.fn();
    const telemetry: Telemetry = {
      withSpan: (_name, work) => work(),
      recordRequest,
      recordPageUser: vi.fn(),
      breakerOpened: vi.fn(),
      breakerClosed: vi.fn(),
      spanIds: () => undefined,
      flush: async () => undefined,
    };
    enableTelemetry(telemetry);
    const now = vi.spyOn(performance, 'now').mockReturnValueOnce(1_000).mockReturnValueOnce(3_500.4);
    await call(
      route(() => {
        addLogFields({ cache: 'hit' });
        return json({}, 404);
      }, '/notes/v1/[noteId]'),
      '/notes/v1/42',
      'POST',
    );
    now.mockRestore();
    expect(recordRequest).toHaveBeenCalledExactlyOnceWith({
      method: 'POST',
      route: '/notes/v1/[noteId]',
      status: 404,
      seconds: 2.5004,
      logFields: { cache: 'hit' },
    });
    expect(log.info).toHaveBeenCalledWith(expect.objectContaining({ ms: 2_500 }), 'request');
  });

  test('rejectWith() responds with the status, the message and the headers of the rejection', async () => {
    const response = await call(
      rejectWith({ status: 405, message: 'Method not allowed', headers: { allow: 'GET' } }),
      '/x',
    );
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET']);
    expect(await response.json()).toEqual({ message: 'Method not allowed' });
    expect(await (await call(routeNotFound, '/x')).json()).toEqual({ message: 'Not found' });
  });

  test('A route with the option `quiet` logs its requests at the level debug', async () => {
    await call(
      route(() => json({}), '/x', { quiet: true }),
      '/x',
    );
    expect(log.debug).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ route: 'GET /x' }),
      'request',
    );
  });

  test('The name of an HttpError is `HttpError`', () => {
    expect(new HttpError(409, 'Already exists')).toMatchObject({ name: 'HttpError', status: 409 });
  });
});
