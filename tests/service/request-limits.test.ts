import { describe, expect, test } from 'vitest';
import { exchange, requestHead } from '../harness/hostile/raw-http';
import { bearer, HOOK, ME, REGISTER, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const token = tokenFor(service.idp, 'user_caller');
const sendRaw = (bytes: string) => exchange(service.url, { bytes });

const CHUNKED = { 'Transfer-Encoding': 'chunked' };
/** Headers of a request for an unknown server action of Next.js. */
const ACTION = { 'Next-Action': '0'.repeat(40), 'Content-Type': 'text/plain' };
const oneByteChunks = (count: number) => `${'1\r\n1\r\n'.repeat(count)}0\r\n\r\n`;
/** The beginning of a chunk. A server that reads the body waits for the rest. */
const UNFINISHED = '5\r\n1';

test.each([
  ME,
  HOOK,
  '/health/alive',
  '/openapi.json',
  '/',
  '/sign-in',
  '/docs',
  '/unknown',
  '/_next/static/x',
])('A request to %s with more than 100 query parameters gets a 400', async (path) => {
  const statusesWith = async (count: number) =>
    (await sendRaw(requestHead(`GET ${path}?${'a&'.repeat(count)} HTTP/1.1`))).statuses;
  expect(await statusesWith(101)).toEqual([400]);
  expect(await statusesWith(7_000)).toEqual([400]);
  expect(await statusesWith(100)).not.toEqual([400]);
});

test.each(['/', '/docs', '/unknown'])(
  'A request to the page %s with more than 100 headers gets a 431',
  async (path) => {
    const statusesWith = async (count: number) => {
      const names = Array.from({ length: count - 2 }, (_, index) => [`x-${index}`, '']);
      // `Host` and `Connection` are headers as well.
      return (await sendRaw(requestHead(`GET ${path} HTTP/1.1`, Object.fromEntries(names)))).statuses;
    };
    expect(await statusesWith(101)).toEqual([431]);
    expect(await statusesWith(100)).not.toEqual([431]);
  },
);

test('A page request with 1,900 cookies gets a 200', async () => {
  const cookie = Array.from({ length: 1_900 }, (_, index) => `c${index}=`).join('; ');
  const { statuses } = await sendRaw(requestHead('GET / HTTP/1.1', { Cookie: cookie }));
  expect(statuses).toEqual([200]);
});

describe('Unread bodies', () => {
  test.each([
    ['GET', ME, 401, {}],
    ['GET', '/', 200, {}],
    ['GET', '/unknown', 404, {}],
    ['OPTIONS', ME, 204, {}],
    ['OPTIONS', REGISTER, 204, {}],
    ['POST', '/health/alive', 405, {}],
    ['POST', '/', 405, ACTION],
    ['POST', '/sign-in', 405, ACTION],
    ['POST', '/unknown', 405, {}],
    ['POST', `${REGISTER}.rsc`, 404, {}],
    ['TRACE', REGISTER, 405, {}],
  ])(
    'The service does not read the body of %s %s, responds with %i and closes the connection',
    async (method, path, status, headers) => {
      const head = requestHead(`${method} ${path} HTTP/1.1`, {
        ...CHUNKED,
        ...headers,
        Connection: 'keep-alive',
      });
      const { statuses, text, closed } = await sendRaw(head + UNFINISHED);
      expect({ statuses, closed }).toEqual({ statuses: [status], closed: true });
      expect(text).toMatch(/connection: close/i);
    },
  );
});

describe('The number of chunks of a body is limited', () => {
  test.each([
    [REGISTER, bearer(token)],
    [HOOK, {}],
    [ME, {}],
    ['/auth/unknown', {}],
  ])(
    'A request to %s with a body of 100,000 one-byte chunks gets a 400, and the server closes the connection',
    async (path, headers) => {
      const head = requestHead(`POST ${path} HTTP/1.1`, { ...CHUNKED, ...headers });
      const { statuses, closed } = await sendRaw(head + oneByteChunks(100_000));
      expect({ statuses, closed }).toEqual({ statuses: [400], closed: true });
    },
  );

  test('The register route accepts a body of about 500 one-byte chunks', async () => {
    const body = JSON.stringify({
      identityProviderUserId: 'user_'.padEnd(255, 'x'),
      ignored: 'x'.repeat(200),
    });
    const chunks = [...body].map((character) => `1\r\n${character}\r\n`).join('');
    const head = requestHead(`POST ${REGISTER} HTTP/1.1`, { ...bearer(token), ...CHUNKED });
    expect((await sendRaw(`${head}${chunks}0\r\n\r\n`)).statuses).toEqual([201]);
  });

  test('The webhook reads an unsigned body of 1,023 chunks of 1 KiB and responds with the error for an invalid signature', async () => {
    // The size of a chunk is hexadecimal.
    const chunk = `400\r\n${'x'.repeat(1_024)}\r\n`;
    const head = requestHead(`POST ${HOOK} HTTP/1.1`, CHUNKED);
    const { text } = await sendRaw(`${head}${chunk.repeat(1_023)}0\r\n\r\n`);
    expect(text).toContain('{"message":"Invalid webhook signature"}');
  });
});

test.each(['/', '/sign-in', '/docs', '/account'])(
  'The response headers of %s do not describe the session. Only the Location header may repeat the query',
  async (path) => {
    const query = Array.from({ length: 100 }, (_, index) => `key${index}=${'x'.repeat(100)}`).join('&');
    const { text } = await sendRaw(requestHead(`GET ${path}?${query} HTTP/1.1`));
    const [head = ''] = text.split('\r\n\r\n');
    expect(head).not.toMatch(/x-middleware|x-clerk-auth/i);
    const others = head.split('\r\n').filter((line) => !line.startsWith('location:'));
    expect(others.join('\n')).not.toContain('key1=');
  },
);

test('If twenty requests have a forged handshake nonce, only the first one causes log lines `printed by a library`', async () => {
  const sendHandshake = () => sendRaw(requestHead('GET /sign-in?__clerk_handshake_nonce=forged HTTP/1.1'));
  const printed = () => service.linesWith('printed by a library').length;
  await sendHandshake();
  const linesOfOne = printed();
  expect(linesOfOne).toBeGreaterThan(0);
  for (let request = 0; request < 19; request += 1) await sendHandshake();
  expect(printed()).toBe(linesOfOne);
});
