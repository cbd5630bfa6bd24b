import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { BUILD_FOLDER } from '../harness/build';
import { exchange, requestHead } from '../harness/raw-http';
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
import { sharedService } from '../vitest/shared-service';

const service = sharedService();
const token = tokenFor(service.idp, 'user_caller');
const sendRaw = (bytes: string) => exchange(service.url, bytes);
const json = (message: string) => `{"message":"${message}"}`;

/** Exchanges that end only after seconds, so they start before the tests. */
let slow: Promise<Awaited<ReturnType<typeof exchange>>[]>;
beforeAll(() => {
  const unfinished = { 'Content-Length': '100' };
  slow = Promise.all([
    sendRaw(`${requestHead(`POST ${REGISTER} HTTP/1.1`, { ...bearer(token), ...unfinished })}{`),
    sendRaw(`${requestHead(`POST ${HOOK} HTTP/1.1`, unfinished)}{`),
    sendRaw(`GET ${ME} HTTP/1.1\r\nHost: localhost\r\n`),
  ]);
});

describe('Addresses', () => {
  const id = 'user_by_alias';
  const body = JSON.stringify({ ...JSON.parse(userCreated(id)), identityProviderUserId: id });
  const post = (address: string) => {
    const headers = { ...bearer(token), ...signatureHeaders(body), 'Content-Length': String(body.length) };
    return sendRaw(requestHead(`POST ${address} HTTP/1.1`, headers) + body);
  };

  // tests/unit/address.test.ts checks the other spellings.
  test.each([`${REGISTER}/`, `/x/..${HOOK}`, `${REGISTER}#x`])(
    'Another spelling of the path of a route gets a 404 in JSON: %s',
    async (address) => {
      const { statuses, text } = await post(address);
      expect(statuses).toEqual([404]);
      expect(text).toContain(json('Not found'));
    },
  );

  test('Only the path of a route itself registers a user', async () => {
    expect(await service.database.idsOf(id)).toEqual([]);
    expect((await post(REGISTER)).statuses).toEqual([201]);
  });
});

test.each(['TRACE', 'TRACK', 'PROPFIND', 'QUERY', 'FOO', 'get', 'CONNECT'])(
  'A request with the method %s does not reach the route, and its headers are not returned',
  async (method) => {
    const headers = { ...bearer(token), 'x-marker': 'marker-of-the-test' };
    const { statuses, text } = await sendRaw(requestHead(`${method} ${ME} HTTP/1.1`, headers));
    expect(statuses.filter((status) => status !== 400 && status !== 405)).toEqual([]);
    expect(text).not.toMatch(/userId|marker-of-the-test/);
  },
);

test('The page for an unchecked session is not found at its own address', async () => {
  expect((await send(`${service.url}/unavailable`)).status).toBe(404);
});

test('The server keeps an idle connection for longer than the idle timeouts of common proxies', async () => {
  expect((await send(service.url + ME)).headers.get('keep-alive')).toBe('timeout=125');
});

test('OPTIONS gets a 204, HEAD without a credential a 401, and a WebSocket upgrade is ignored', async () => {
  expect((await sendRaw(requestHead(`OPTIONS ${ME} HTTP/1.1`, bearer(token)))).statuses).toEqual([204]);
  expect((await sendRaw(requestHead(`HEAD ${ME} HTTP/1.1`))).statuses).toEqual([401]);
  const upgrade = { Connection: 'Upgrade, close', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' };
  expect((await sendRaw(requestHead(`GET ${ME} HTTP/1.1`, upgrade))).statuses).toEqual([401]);
});

describe('Limits', () => {
  test('A request for a static file with more than 100 query parameters gets a 400', async () => {
    const head = requestHead(`GET /_next/static/x?${'a&'.repeat(7_000)} HTTP/1.1`);
    expect((await sendRaw(head)).statuses).toEqual([400]);
  });

  test('A page request with 1,900 cookies gets a 200, and headers above 16 KiB get a 431 in JSON', async () => {
    const cookie = Array.from({ length: 1_900 }, (_, index) => `c${index}=`).join('; ');
    expect((await sendRaw(requestHead('GET / HTTP/1.1', { Cookie: cookie }))).statuses).toEqual([200]);
    const { statuses, text } = await sendRaw(requestHead('GET / HTTP/1.1', { 'x-long': 'x'.repeat(20_000) }));
    expect(statuses).toEqual([431]);
    expect(text).toContain(json('Request header fields too large'));
  });

  test.each([
    ['without a length', { 'Transfer-Encoding': 'chunked' }, `20000\r\n${'x'.repeat(0x20000)}\r\n`],
    ['with a length', { 'Content-Length': '99999999', Connection: 'keep-alive' }, 'x'.repeat(0x20000)],
  ])(
    'A body of more than 1 MiB %s gets one 413 before it ends, and its connection is closed',
    async (_case, headers, chunk) => {
      const sent = await sendRaw(requestHead(`POST ${HOOK} HTTP/1.1`, headers) + chunk.repeat(9));
      expect(sent).toMatchObject({ statuses: [413], closed: true });
      expect(sent.text).toContain(json('Payload too large'));
    },
  );

  test('A client that does not complete its request in 10 s gets a 408 in JSON, and its connection is closed', async () => {
    for (const { statuses, closed, text } of await slow) {
      expect({ statuses, closed }).toEqual({ statuses: [408], closed: true });
      expect(text).toContain(json('Request timeout'));
    }
  });
});

test.each([
  ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n', '{}'],
  ['content-length and chunked', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'],
  ['an unknown coding', 'Transfer-Encoding: xchunked\r\n', '0\r\n\r\n'],
  ['white space before the colon', 'Transfer-Encoding : chunked\r\n', '0\r\n\r\n'],
  ['a bad chunk size', 'Transfer-Encoding: chunked\r\n', '0x2\r\n{}\r\n0\r\n\r\n'],
])(
  'A request with %s gets a 400 in JSON, and the request that is smuggled behind it is not handled',
  async (what, framing, content) => {
    const id = `user_smuggled ${what}`;
    const body = JSON.stringify({ identityProviderUserId: id });
    const headers = { ...bearer(token), 'Content-Length': String(body.length) };
    const hidden = requestHead(`POST ${REGISTER} HTTP/1.1`, headers) + body;
    const outer = `POST ${REGISTER} HTTP/1.1\r\nHost: localhost\r\n${framing}\r\n${content}`;
    const { statuses, closed, text } = await sendRaw(outer + hidden);
    expect({ statuses, closed }).toEqual({ statuses: [400], closed: true });
    expect(text).toMatch(/x-request-id: [0-9a-f-]{36}/);
    expect(await service.database.users('user_smuggled%')).toEqual([]);
  },
);

test('A server action runs only with a known id, valid arguments and the origin of the page', async () => {
  const manifest = readFileSync(path.join(BUILD_FOLDER, 'server/server-reference-manifest.json'), 'utf8');
  const actions = [...manifest.matchAll(/"([0-9a-f]{40,64})":/g)].map(([, id = '']) => id);
  const act = async (action: string, headers: Record<string, string> = {}, body = '[]') => {
    const all = { 'next-action': action, 'content-type': 'text/plain;charset=UTF-8', ...headers };
    const post = (path: string) => send(service.url + path, { method: 'POST', headers: all, body });
    const [page, pageWithVersion] = await Promise.all([post('/sign-in'), post('/sign-in/v1/x')]);
    expect(pageWithVersion.status).toBe(page.status);
    return page.status;
  };
  expect(await Promise.all(actions.map((action) => act(action)))).toContain(200);
  const [action = ''] = actions;
  expect(await act(action, { origin: 'https://evil.example' })).toBe(400);
  expect(await act(action, {}, '\x1b[31m[]')).toBe(400);
  expect(await act('not-an-id')).toBe(404);
});
