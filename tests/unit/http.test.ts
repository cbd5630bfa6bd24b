import { notFound } from 'next/navigation';
import { NextRequest } from 'next/server';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { HttpError, json, route } from '../../lib/http';
import { log } from '../../lib/log';

vi.mock('../../lib/log', async (original) => ({
  ...(await original<typeof import('../../lib/log')>()),
  log: { info: vi.fn(), error: vi.fn() },
}));

beforeEach(() => {
  vi.clearAllMocks();
});

const call = (path: string, params: Record<string, string | string[]>) =>
  route(() => json({}))(new NextRequest(`http://localhost:3000${path}`), { params: Promise.resolve(params) });

describe('the log names a route as its folder is named', () => {
  test.each<[string, Record<string, string | string[]>, string]>([
    ['/users/v1/me', {}, 'GET /users/v1/me'],
    ['/notes/v1/alice@example.com', { noteId: 'alice@example.com' }, 'GET /notes/v1/[noteId]'],
    ['/notes/v1/alice%40example.com', { noteId: 'alice%40example.com' }, 'GET /notes/v1/[noteId]'],
    ['/notes/v1/caf%c3%a9', { noteId: 'café' }, 'GET /notes/v1/[noteId]'],
    ['/notes/v1/alice%27s!', { noteId: "alice's!" }, 'GET /notes/v1/[noteId]'],
    ['/notes/v1/notes', { noteId: 'notes' }, 'GET /notes/v1/[noteId]'],
    ['/a/b/c', { first: 'a', second: 'b' }, 'GET /[first]/[second]/c'],
    ['/x/a/b/c', { path: ['a', 'b', 'c'] }, 'GET /x/[path]'],
    ['/a/a', {}, 'GET /a/a'],
    ['/notes/v1/%2561lice', { noteId: '%2561lice' }, 'GET /notes/v1/[noteId]'],
    ['/notes/v1/%2561lice', { noteId: '%61lice' }, 'GET /notes/v1/[noteId]'],
    ['/notes/v1/alice.rsc', { noteId: 'alice' }, 'GET /'],
  ])('%s', async (path, params, name) => {
    await call(path, params);
    expect(vi.mocked(log.info).mock.calls[0]?.[0]).toMatchObject({ route: name });
  });
});

test('a value that is encoded over and over keeps nobody busy', async () => {
  const decode = vi.spyOn(globalThis, 'decodeURIComponent');
  const value = `%${'25'.repeat(5_000)}`;
  await call(`/notes/v1/${value}`, { noteId: value });
  expect(decode.mock.calls.length).toBeLessThan(30);
  decode.mockRestore();
});

const failing = (error: unknown) =>
  route(() => {
    throw error;
  })(new NextRequest('http://localhost:3000/x'), { params: Promise.resolve({}) });

describe('a handler that throws', () => {
  test('an HttpError gets its status and its message', async () => {
    const response = await failing(new HttpError(413, 'Payload too large'));
    expect(response.status).toBe(413);
    expect(await response.json()).toEqual({ message: 'Payload too large' });
  });

  test.each([new Error('connect to 10.0.0.1'), 'text', undefined, null])(
    'anything else gets the 500 that tells nothing: %s',
    async (thrown) => {
      const response = await failing(thrown);
      expect(response.status).toBe(500);
      expect(await response.text()).toBe('{"message":"Internal Server Error"}');
      expect(JSON.stringify(vi.mocked(log.error).mock.calls)).not.toContain('10.0.0.1');
    },
  );

  test('and one that returns no response gets the same', async () => {
    const returning = route(Object.create({ call: () => undefined }).call);
    const response = await returning(new NextRequest('http://localhost:3000/x'), {
      params: Promise.resolve({}),
    });
    expect(response.status).toBe(500);
    expect(await response.text()).toBe('{"message":"Internal Server Error"}');
  });

  test("Next.js's own control flow passes through", async () => {
    await expect(
      Promise.resolve(
        route(() => notFound())(new NextRequest('http://localhost:3000/x'), { params: Promise.resolve({}) }),
      ),
    ).rejects.toThrow('NEXT_HTTP_ERROR_FALLBACK;404');
  });
});
