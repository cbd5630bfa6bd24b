import { type NextFetchEvent, NextRequest, NextResponse } from 'next/server';
import { expect, test, vi } from 'vitest';
import { setEnvironment } from '#lib/base/env';
import { log } from '#lib/base/log';
import { pageResponse } from '#lib/clerk/page-session';
import { readVerdict, VERDICT } from '#lib/http/signed-verdict';
import { BUILD_TIME_VALUES } from '../harness/build';

setEnvironment(BUILD_TIME_VALUES);

const event: NextFetchEvent = Object.create(null);

/** Passes a page request to the SDK, which `respond` replaces. Returns the response and the requests that the SDK got. */
async function load(
  path: string,
  init: ConstructorParameters<typeof NextRequest>[1] = {},
  respond: (call: number) => Promise<Response | undefined> = async () => NextResponse.next(),
) {
  const requests: NextRequest[] = [];
  const sdk = (request: NextRequest) => respond(requests.push(request));
  const response = await pageResponse(sdk, new NextRequest(`https://app.example${path}`, init), event);
  const [first] = requests;
  if (first === undefined) throw new Error('The SDK got no request');
  return { response, requests, first };
}

test.each([
  ['/a?__clerk_redirect_url=https://evil.example&b=c', '?b=c', '/a?b=c'],
  ['/a?__clerk_help=x&b=c', '?__clerk_help=x&b=c', '/a?b=c'],
  [`/a?b=${'c'.repeat(1_996)}`, `?b=${'c'.repeat(1_996)}`, '/'],
  [`/a?b=${'c'.repeat(1_995)}`, `?b=${'c'.repeat(1_995)}`, `/a?b=${'c'.repeat(1_995)}`],
])('The SDK and the page get only harmless parameters of a query: %s', async (given, search, path) => {
  const { first } = await load(given);
  expect(first.nextUrl.search).toBe(search);
  expect(first.headers.get('x-identity-link-path')).toBe(path);
});

test.each([
  ['authorization', 'Bearer eyJh.eyJz.c2ln', null],
  ['x-clerk-auth-status', 'signed-in', null],
  ['x-forwarded-host', 'app.example:443', 'app.example'],
  ['x-forwarded-host', 'app.example:8080', 'app.example:8080'],
  ['cookie', '__refresh_x=1; a=b', 'a=b'],
  ['next-router-state-tree', '["",{}]', '["",{}]'],
  ['next-router-state-tree', '%', null],
])('The SDK gets the header %s of a page request only in a harmless form: %s', async (name, given, seen) => {
  const { first } = await load('/a', { headers: { [name]: given } });
  expect(first.headers.get(name)).toBe(seen);
});

test('The SDK does not redirect a POST to a page', async () => {
  expect((await load('/a')).first.headers.get('sec-fetch-dest')).toBeNull();
  const { first } = await load('/a', { method: 'POST' });
  expect([first.method, first.headers.get('sec-fetch-dest')]).toEqual(['POST', 'empty']);
});

test.each<[what: string, respond: () => Promise<Response | undefined>]>([
  ['fails', () => Promise.reject(new Error('failed'))],
  ['returns no response', async () => undefined],
])('If the SDK %s, the page is served without a session', async (_what, respond) => {
  const warn = vi.spyOn(log, 'warn').mockReturnValue();
  const served = NextResponse.next();
  const visitor = { headers: { cookie: 'a=b' } };
  const { response, requests } = await load('/a', visitor, async (call) => (call === 1 ? respond() : served));
  const [, second] = requests;
  expect(response).toBe(served);
  expect(second?.url).toBe('https://app.example/a');
  expect(second?.headers.get('sec-fetch-dest')).toBe('empty');
  expect(second?.headers.has('cookie')).toBe(false);
  warn.mockRestore();
});

test.each<[what: string, method: string, respond: () => Promise<Response>]>([
  ['does not respond', 'GET', () => new Promise(() => undefined)],
  ['cannot get the public keys', 'GET', async () => NextResponse.next()],
  ['cannot get the public keys', 'POST', async () => NextResponse.next()],
])(
  'If the SDK %s, a %s gets the error page with status 503, or no response for a server action',
  async (_what, method, respond) => {
    vi.useFakeTimers();
    const warn = vi.spyOn(log, 'warn').mockReturnValue();
    const failed = async () => {
      const response = await respond();
      response.headers.set('x-clerk-auth-reason', 'jwk-remote-failed-to-load');
      return response;
    };
    const loading = load('/a', { method }, async (call) => (call === 1 ? failed() : NextResponse.next()));
    await vi.advanceTimersByTimeAsync(3_000);
    const { response, requests } = await loading;
    warn.mockRestore();
    vi.useRealTimers();
    if (method === 'POST') return expect(response).toBeUndefined();
    expect(requests[1]?.headers.has('cookie')).toBe(false);
    expect([response?.status, response?.headers.get('x-middleware-rewrite')]).toEqual([
      503,
      'https://app.example/unavailable',
    ]);
    const verdict = response?.headers.get(`x-middleware-request-${VERDICT}`) ?? '';
    expect(readVerdict(new Headers({ [VERDICT]: verdict }))).toMatchObject({ isUnchecked: true });
  },
);

test.each(['/robots.txt', '/icon.svg', '/sign-in', '/sign-in/factor-one', '/sign-up'])(
  'A page that needs no session is served even if the session could not be checked: %s',
  async (path) => {
    vi.spyOn(log, 'warn').mockReturnValueOnce();
    const unchecked = NextResponse.next({ headers: { 'x-clerk-auth-reason': 'jwk-remote-failed-to-load' } });
    const { response } = await load(path, {}, async (call) => (call === 1 ? unchecked : NextResponse.next()));
    expect([response?.status, response?.headers.get('x-middleware-next')]).toEqual([200, '1']);
  },
);

test('A response of the SDK loses the headers that describe the session and the address', async () => {
  const completed = NextResponse.rewrite('https://app.example/a', { headers: { 'set-cookie': 'a=b' } });
  for (const name of ['status', 'reason', 'message']) completed.headers.set(`x-clerk-auth-${name}`, 'x');
  const { response } = await load('/a', {}, async () => completed);
  expect(Object.fromEntries(response?.headers ?? [])).toEqual({
    'set-cookie': 'a=b',
    'x-middleware-next': '1',
  });
});
