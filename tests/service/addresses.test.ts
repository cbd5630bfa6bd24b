import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { BUILD_FOLDER } from '../harness/build';
import { exchange, requestHead } from '../harness/hostile/raw-http';
import {
  bearer,
  HOOK,
  ME,
  REGISTER,
  send,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const token = tokenFor(service.idp, 'user_caller');

/**
 * Id of the user in the requests to aliases. An alias is a different spelling of the address of a route. If Next.js mapped it to
 * the route, the request would register this user.
 */
const ALIASED = 'user_by_alias';
const sendRaw = (bytes: string) => exchange(service.url, { bytes });

const buildId = readFileSync(path.join(BUILD_FOLDER, 'BUILD_ID'), 'utf8').trim();
/** Returns aliases that Next.js could map to the route of an address. */
const aliases = (address: string) => [
  `${address}/`,
  `${address}.rsc`,
  `${address}.prefetch.rsc`,
  `${address}.segments/_tree.segment.rsc`,
  `/_next/data/${buildId}${address}.json`,
  `/_next/static/../..${address}`,
  `/_next/static/%2e%2e/%2e%2e${address}`,
  `/x/..${address}`,
  `/x/%2e%2e${address}`,
  `/.${address}`,
  address.replace('v1', '%761'),
  address.replace('/v1/', '/v1%2f'),
  address.replace('/v1/', '%5Cv1/'),
];

describe('Aliases of a route', () => {
  /** A body that is valid for the register route and for the webhook. Both routes register the user ALIASED for this body. */
  const body = JSON.stringify({ ...JSON.parse(userCreated(ALIASED)), identityProviderUserId: ALIASED });
  const post = (address: string) => {
    const headers = { ...bearer(token), ...signatureHeaders(body), 'Content-Length': String(body.length) };
    return sendRaw(requestHead(`POST ${address} HTTP/1.1`, headers) + body);
  };

  test.each([REGISTER, HOOK].flatMap(aliases))(
    'A request to an alias of a route gets a 404 in JSON: %s',
    async (address) => {
      const { statuses, text } = await post(address);
      expect(statuses).toEqual([404]);
      expect(text).toMatch(/content-type: application\/json/i);
      expect(text).toContain('{"message":"Not found"}');
    },
  );

  test('A request to an alias does not register a user, but a request to the route itself does', async () => {
    expect(await service.database.rowsOf(ALIASED)).toEqual([]);
    expect((await post(REGISTER)).statuses).toEqual([201]);
    expect((await post(HOOK)).statuses).toEqual([200]);
  });
});

describe('Requests that would cause errors in Next.js', () => {
  const state = (value: string) => ({ rsc: '1', 'next-router-state-tree': value });

  test.each<[string, RequestInit]>([
    ['/', { headers: state('x') }],
    ['/account', { headers: state('%') }],
    ['/sign-in', { headers: state(encodeURIComponent('["",{"children":7}]')) }],
    ['/sign-in/%ff', {}],
    ['/sign-up/%', {}],
    ['/_global-error', {}],
    ['/_error', {}],
    ['/_not-found', {}],
    ['/500', {}],
    ['/', { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x' }, body: '--x' }],
    ['/', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=b' }],
    ['/', { method: 'POST', headers: { 'next-action': 'x' }, body: '[]' }],
    // An unknown server action whose id has the length of a real id.
    ['/', { method: 'POST', headers: { 'next-action': '7f'.repeat(21) }, body: '[' }],
    ['/unknown', { method: 'POST', body: '{}' }],
    ['/icon.svg', { method: 'DELETE' }],
  ])(
    'A request that would cause an error in Next.js gets a 400, 404 or 405, and shared caches do not store the response: %s %j',
    async (address, init) => {
      const { status, headers } = await send(`${service.url}${address}`, init);
      expect([400, 404, 405]).toContain(status);
      expect(headers.get('cache-control') ?? '').not.toContain('s-maxage');
    },
  );

  test('A server action runs only if its arguments can be decoded and the request comes from the origin of the page', async () => {
    const manifest = readFileSync(path.join(BUILD_FOLDER, 'server/server-reference-manifest.json'), 'utf8');
    const actions = [...manifest.matchAll(/"([0-9a-f]{40,64})":/g)].map(([, id = '']) => id);
    expect(actions.length).toBeGreaterThan(0);
    const act = (action: string, headers: Record<string, string> = {}, body = '[]') =>
      send(`${service.url}/sign-in`, {
        method: 'POST',
        headers: { 'next-action': action, 'content-type': 'text/plain;charset=UTF-8', ...headers },
        body,
      });
    const statuses = await Promise.all(actions.map(async (action) => (await act(action)).status));
    expect(statuses).toContain(200);
    for (const action of actions) {
      for (const [headers, body, expected] of [
        [{ origin: 'https://evil.example' }, '[]', 405],
        [{ 'sec-fetch-site': 'cross-site' }, '[]', 405],
        [{}, '["$F1"]', 400],
        [{}, '\x1b[31m[]', 400],
        [{ 'content-type': 'multipart/form-data; boundary=x' }, '--x', 400],
      ] as const) {
        expect((await act(action, headers, body)).status).toBe(expected);
      }
    }
  });
});

describe('Unusual paths', () => {
  test.each([
    '/users/v1/me/',
    '//users/v1/me',
    '/users//v1/me',
    '/users/v1/%6de',
    '/USERS/V1/ME',
    '/users/v1/me%2f',
    '/users%2fv1%2fme',
    '/users/v1/./me',
    '/users/v1/x/../me',
    '/users/v1/%2e%2e/v1/me',
    '/users/v1/me;x=1',
    '/users/v1/me%00',
    '/users/v1/me%0d%0aSet-Cookie:x',
    '/users/v1/%',
    '/users/v1/%ff',
    '/users\\v1\\me',
    '/users/v1/me.json',
    '/users/v1/me.rsc',
    '/users/v1/me#x',
    '/auth/..%2fusers/v1/me',
    '/api-not-found',
    '/_next/static/../../users/v1/me',
    '/_next/static/..%2f..%2fusers/v1/me',
    '/_next/static/%2e%2e/%2e%2e/users/v1/me',
    '/_next/data/x/users/v1/me.json',
    '/_next/image?url=%2Fusers%2Fv1%2Fme&w=64&q=75',
    '//evil.example/users/v1/me',
    '/\\evil.example',
    '/%5cevil.example',
    '/%2f%2fevil.example',
    'http://localhost/users/v1/me',
    'http://evil.example/users/v1/me',
    'users/v1/me',
  ])('A request with forged session headers is not authenticated at the path %s', async (path) => {
    const forged = { 'x-clerk-auth-status': 'signed-in', 'x-clerk-auth-token': 'a.b.c' };
    const { statuses, text } = await sendRaw(requestHead(`GET ${path} HTTP/1.1`, forged));
    expect(statuses).toHaveLength(1);
    expect([400, 401, 404, 405]).toContain(statuses[0]);
    expect(text).not.toContain('"isAuthenticated":true');
  });
});

describe('Unusual methods', () => {
  test.each(['TRACK', 'PROPFIND', 'QUERY', 'FOO', 'get', 'M-SEARCH', 'CONNECT', 'LINK'])(
    'A request with the method %s does not reach the route',
    async (method) => {
      const { statuses, text } = await sendRaw(requestHead(`${method} ${ME} HTTP/1.1`, bearer(token)));
      expect(statuses.filter((status) => status !== 400 && status !== 405)).toEqual([]);
      expect(text).not.toContain('userId');
    },
  );

  test('A pipelined CONNECT request does not replace the response to the request before it', async () => {
    const requests = [`GET ${ME} HTTP/1.1`, 'CONNECT localhost:1 HTTP/1.1'];
    const { text } = await sendRaw(
      requests.map((line) => requestHead(line, { ...bearer(token), Connection: 'keep-alive' })).join(''),
    );
    expect(text).not.toMatch(/^HTTP\/1\.1 405/);
  });

  test.each([`TRACE ${ME}`, 'TRACE *', 'GET *', 'OPTIONS *', 'POST *'])(
    'The request "%s" is rejected, and the response contains neither the headers of the request nor a stack trace',
    async (line) => {
      const { statuses, text } = await sendRaw(
        requestHead(`${line} HTTP/1.1`, { 'x-marker': 'marker-of-the-test' }),
      );
      expect([400, 405]).toContain(statuses[0]);
      expect(text).not.toMatch(/marker-of-the-test|at .*\.js|node_modules/);
    },
  );

  test('An OPTIONS request gets a 204 without a user id, and a HEAD request without a credential gets a 401', async () => {
    for (const path of [ME, REGISTER]) {
      const { statuses, text } = await sendRaw(requestHead(`OPTIONS ${path} HTTP/1.1`, bearer(token)));
      expect(statuses).toEqual([204]);
      expect(text).not.toContain('userId');
    }
    expect((await sendRaw(requestHead(`HEAD ${ME} HTTP/1.1`))).statuses).toEqual([401]);
  });

  test.each([
    [ME, 401],
    ['/users/v1/unknown', 404],
    ['/unknown', 404],
  ])('The service ignores a WebSocket upgrade at %s and responds with %i', async (path, status) => {
    const offer = {
      Connection: 'Upgrade, close',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    };
    const { statuses, closed } = await sendRaw(requestHead(`GET ${path} HTTP/1.1`, offer));
    expect({ statuses, closed }).toEqual({ statuses: [status], closed: true });
  });

  test('A header cannot override the method of a request', async () => {
    for (const name of ['X-HTTP-Method-Override', 'X-Method-Override', 'X-HTTP-Method']) {
      expect((await sendRaw(requestHead(`GET ${ME} HTTP/1.1`, { [name]: 'OPTIONS' }))).statuses).toEqual([
        401,
      ]);
    }
  });
});
