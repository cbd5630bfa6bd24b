import { readdirSync } from 'node:fs';
import path from 'node:path';
import { notFound } from 'next/navigation';
import { NextRequest } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { HttpError } from '#lib/http/error';
import { json, type RouteContext, type RouteHandler, route } from '#lib/http/route';
import { log } from '#lib/log';

vi.mock('#lib/log', async (original) => ({
  ...(await original<typeof import('#lib/log')>()),
  log: { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() },
}));

beforeEach(() => {
  vi.clearAllMocks();
});

const segment = { params: Promise.resolve({}) };
const call = (handler: RouteHandler<RouteContext>, path: string, method = 'GET') =>
  handler(new NextRequest(`http://localhost:3000${path}`, { method }), segment);

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
    'The log contains only the first segment of an API path if the route has no pattern: %s',
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

  test.each(files)('The route pattern matches the folder of the route: %s', async (file) => {
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

test('A quiet route logs above debug level only if its handler throws', async () => {
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
  })(new NextRequest('http://localhost:3000/x'), segment);

describe('A handler that throws', () => {
  test('A handler that throws an HttpError causes a response with its status and message', async () => {
    const response = await failing(new HttpError(413, 'Payload too large'));
    expect(response.status).toBe(413);
    expect(await response.json()).toEqual({ message: 'Payload too large' });
  });

  test.each([new Error('connect to 10.0.0.1'), 'text', undefined, null])(
    'A handler that throws any other value causes a 500 without details: %s',
    async (thrown) => {
      const response = await failing(thrown);
      expect(response.status).toBe(500);
      expect(await response.text()).toBe('{"message":"Internal Server Error"}');
      expect(JSON.stringify(vi.mocked(log.error).mock.calls)).not.toContain('10.0.0.1');
    },
  );

  test('A handler that does not return a response causes a 500 without details', async () => {
    const returning = route(Object.create({ call: () => undefined }).call);
    const response = await returning(new NextRequest('http://localhost:3000/x'), segment);
    expect(response.status).toBe(500);
    expect(await response.text()).toBe('{"message":"Internal Server Error"}');
  });

  test('route() passes the control-flow errors of Next.js through', async () => {
    await expect(
      Promise.resolve(route(() => notFound())(new NextRequest('http://localhost:3000/x'), segment)),
    ).rejects.toThrow('NEXT_HTTP_ERROR_FALLBACK;404');
  });
});
