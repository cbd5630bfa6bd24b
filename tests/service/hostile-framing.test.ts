import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { largestFile } from '../harness/build';
import { connected, exchange, requestHead } from '../harness/hostile/raw-http';
import { hasProc, notRun, openFiles } from '../harness/proc';
import { bearer, ME, me, REGISTER, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const token = tokenFor(service.idp, 'user_caller');

const sendRaw = (bytes: string) => exchange(service.url, { bytes });

describe('Request smuggling', () => {
  const body = (id: string) => JSON.stringify({ identityProviderUserId: id });
  /** Returns the request that an attacker smuggles behind another request. The smuggled request registers a user with this id. */
  const hidden = (id: string) =>
    requestHead(`POST ${REGISTER} HTTP/1.1`, {
      ...bearer(token),
      'Content-Length': String(body(id).length),
    }) + body(id);
  /** Returns the head of the first request. `lines` are its headers for the framing of the body. */
  const outer = (lines: string) => `POST ${REGISTER} HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n`;

  test('A second request on a connection is handled if the framing of the first request is valid', async () => {
    const empty = `${outer('Content-Length: 2\r\n')}{}`;
    const { statuses } = await sendRaw(empty + hidden('user_pipelined'));
    expect(statuses).toEqual([401, 201]);
    expect(await service.database.users('user_pipelined')).toHaveLength(1);
  });

  test.each([
    ['content-length and chunked', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'],
    ['chunked and content-length', 'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'],
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n', '{}'],
    ['a list of lengths', 'Content-Length: 2, 2\r\n', '{}'],
    ['a length with a sign', 'Content-Length: +2\r\n', '{}'],
    ['a negative length', 'Content-Length: -1\r\n', ''],
    ['a length that overflows', 'Content-Length: 18446744073709551618\r\n', '{}'],
    ['chunked before another coding', 'Transfer-Encoding: chunked, identity\r\n', '0\r\n\r\n'],
    ['an unknown coding', 'Transfer-Encoding: xchunked\r\n', '0\r\n\r\n'],
    ['white space before the colon', 'Transfer-Encoding : chunked\r\n', '0\r\n\r\n'],
    ['a vertical tab', 'Transfer-Encoding:\u000bchunked\r\n', '0\r\n\r\n'],
    ['two codings', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', '0\r\n\r\n'],
    ['a folded header', 'X-A: a\r\n Content-Length: 2\r\n', '{}'],
    ['NUL in a header', 'X-A: a\0b\r\n', ''],
    ['bare line feeds', 'Content-Length: 2\nX-A: b\r\n', '{}'],
    ['a chunk size with 0x', 'Transfer-Encoding: chunked\r\n', '0x2\r\n{}\r\n0\r\n\r\n'],
    ['a chunk size that overflows', 'Transfer-Encoding: chunked\r\n', 'ffffffffffffffff2\r\n{}\r\n0\r\n\r\n'],
    ['a negative chunk size', 'Transfer-Encoding: chunked\r\n', '-2\r\n{}\r\n0\r\n\r\n'],
    ['a line break in a chunk extension', 'Transfer-Encoding: chunked\r\n', '2;a="b\n"\r\n{}\r\n0\r\n\r\n'],
    ['chunks ended by line feeds', 'Transfer-Encoding: chunked\r\n', '2\n{}\n0\n\n'],
    ['a chunk longer than its size', 'Transfer-Encoding: chunked\r\n', '2\r\n{}X\r\n0\r\n\r\n'],
  ])(
    'A request with %s gets a 400, the connection is closed, and the smuggled request behind it is not handled',
    async (what, lines, content) => {
      const id = `user_smuggled ${what}`;
      const { statuses, closed } = await sendRaw(outer(lines) + content + hidden(id));
      expect(statuses).toEqual([400]);
      expect(closed).toBe(true);
      expect(await service.database.users('user_smuggled%')).toEqual([]);
    },
  );
});

describe('Other hostile requests', () => {
  const opened = () => openFiles(service.processes[0]?.pid ?? 0);

  test.skipIf(!hasProc)(
    `Reset connections with hundreds of pipelined requests do not leak open files${notRun}`,
    async () => {
      const before = opened();
      for (let connection = 0; connection < 3; connection += 1) {
        const socket = await connected(service.url);
        socket.write(requestHead(`GET ${largestFile()} HTTP/1.1`, { Connection: 'keep-alive' }).repeat(300));
        await Promise.race([once(socket, 'data'), once(socket, 'close')]);
        socket.resetAndDestroy();
      }
      await expect.poll(opened).toBeLessThan(before + 20);
      expect((await me(service.url, token)).status).toBe(200);
    },
  );

  test.each([
    ['an unknown expectation', { Expect: 'a miracle' }, 417],
    ['no Host', { Host: 'none' }, 400],
  ])(
    'A request with %s gets an error response with a JSON body and an X-Request-Id header',
    async (_what, headers, status) => {
      const head = requestHead(`GET ${ME} HTTP/1.1`, headers);
      const { statuses, text } = await sendRaw(head.replace('Host: none\r\n', ''));
      expect(statuses).toEqual([status]);
      expect(text).toMatch(/x-request-id/i);
      expect(text).toMatch(/"message":/);
    },
  );
});

test('After the requests with invalid framing, the service works, and its log has no response with a 5xx status', async () => {
  expect((await me(service.url, token)).status).toBe(200);
  expect(service.linesWith('"msg":"request"').length).toBeGreaterThan(5);
  expect(service.linesWith('"status":5')).toEqual([]);
});
