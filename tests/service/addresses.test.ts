import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BUILD_FOLDER } from '../harness/build';
import { exchange, requestHead } from '../harness/hostile/raw-http';
import { bearer, send, signatureHeaders, tokenFor, userCreated } from '../harness/requests';
import { startTestService, type TestService } from '../harness/service';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service?.stop());

const buildId = readFileSync(path.join(BUILD_FOLDER, 'BUILD_ID'), 'utf8').trim();
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

describe('a route has one address: another spelling of it is a 404 in JSON', () => {
  const post = async (address: string, headers: Record<string, string>, body: string) => {
    const length = { 'Content-Length': String(Buffer.byteLength(body)) };
    return exchange(service.url, {
      bytes: requestHead(`POST ${address} HTTP/1.1`, { ...headers, ...length }) + body,
    });
  };
  const expectNotFound = async (answer: ReturnType<typeof post>) => {
    const { statuses, text } = await answer;
    expect(statuses).toEqual([404]);
    expect(text).toMatch(/content-type: application\/json/i);
    expect(text).toContain('{"message":"Not found"}');
  };

  test.each(aliases('/auth/v1/register'))('%s', async (address) => {
    const body = '{"identityProviderUserId":"user_by_alias"}';
    await expectNotFound(post(address, bearer(tokenFor(service.idp, 'user_caller')), body));
  });

  test.each(aliases('/webhooks/idp/v1/user-created'))('%s', async (address) => {
    const body = userCreated('user_by_alias');
    await expectNotFound(post(address, signatureHeaders(body), body));
  });

  test('nobody was registered by one', async () => {
    const { rows } = await service.database.pool.query(
      "SELECT 1 FROM users WHERE identity_provider_user_id = 'user_by_alias'",
    );
    expect(rows).toEqual([]);
  });
});

describe('what the framework answers with a failure is refused', () => {
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
    ['/', { method: 'POST', headers: { 'next-action': '7f'.repeat(21) }, body: '[' }],
    ['/unknown', { method: 'POST', body: '{}' }],
    ['/icon.svg', { method: 'DELETE' }],
  ])('%s %j', async (address, init) => {
    const { status, headers } = await send(`${service.url}${address}`, init);
    expect([400, 404, 405]).toContain(status);
    expect(headers.get('cache-control') ?? '').not.toContain('s-maxage');
  });

  test("the SDK's one action is served, with nothing in it and from the page's own origin only", async () => {
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
      for (const [headers, body] of [
        [{ origin: 'https://evil.example' }, '[]'],
        [{ origin: '\u0001' }, '[]'],
        [{}, '["$F1"]'],
        [{}, '\x1b[31m[]'],
        [{ 'content-type': 'multipart/form-data; boundary=x' }, '--x'],
      ] as const) {
        expect((await act(action, headers, body).catch(() => ({ status: 405 }))).status).toBe(405);
      }
    }
  });
});
