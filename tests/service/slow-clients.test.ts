import { expect, test } from 'vitest';
import { largestFile } from '../harness/build';
import { exchange, requestHead } from '../harness/hostile/raw-http';
import { hasProc, notRun, residentMegabytes } from '../harness/proc';
import {
  bearer,
  deliver,
  HOOK,
  ME,
  me,
  REGISTER,
  register,
  tokenFor,
  userCreated,
} from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const token = tokenFor(service.idp, 'user_caller');
await me(service.url, token);
const never = { 'Content-Length': '100' };
const drip = { chunk: '1\r\n{\r\n', pauseMilliseconds: 500 };
/** Bodies that come too slowly: under way for as long as the other tests run. */
const slow = Promise.all([
  exchange(service.url, {
    bytes: `${requestHead(`POST ${REGISTER} HTTP/1.1`, { ...bearer(token), ...never })}{`,
  }),
  exchange(service.url, { bytes: `${requestHead(`POST ${REGISTER} HTTP/1.1`, never)}{` }),
  exchange(service.url, { bytes: `${requestHead(`POST ${HOOK} HTTP/1.1`, never)}{` }),
  exchange(service.url, {
    bytes: requestHead(`POST ${HOOK} HTTP/1.1`, { 'Transfer-Encoding': 'chunked' }),
    endless: drip,
  }),
]);
const byteASecond = { chunk: 'x', pauseMilliseconds: 1_000 };
/** Requests that are answered before they are complete. */
const slowAndAnswered = Promise.all(
  [`GET ${ME}`, `HEAD ${ME}`, 'GET /', 'GET /icon.svg', 'GET /_next/static/x.js', 'DELETE /unknown'].map(
    (line) =>
      exchange(service.url, {
        bytes: `${line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n`,
        endless: byteASecond,
      }),
  ),
);
/** A connection that is kept by what is no request. */
const lineBreaks = exchange(service.url, {
  bytes: `GET ${ME} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  endless: { chunk: '\r\n', pauseMilliseconds: 2_000 },
});
/** A client that asks for much and takes nothing of it, until its connection has ended. */
const takesNothing = exchange(service.url, {
  bytes: requestHead(`GET ${largestFile()} HTTP/1.1`, { Connection: 'keep-alive' }).repeat(32),
  endless: { chunk: '\r\n', pauseMilliseconds: 500 },
  takesNothing: true,
});
/** Headers that never end. */
const slowHeaders = exchange(service.url, {
  bytes: `GET ${ME} HTTP/1.1\r\nHost: localhost\r\n`,
  endless: { chunk: 'X-A: b\r\n', pauseMilliseconds: 1_000 },
});

test.skipIf(!hasProc)(
  `bodies that never end, by the dozen: others are answered meanwhile, and memory stays bounded${notRun}`,
  async () => {
    const megabytes = () => residentMegabytes(service.processes[0]?.pid ?? 0);
    const before = megabytes();
    const chunked = { ...bearer(token), 'Transfer-Encoding': 'chunked' };
    const spaces = `4000\r\n${' '.repeat(0x4000)}\r\n`;
    const attackers = Array.from({ length: 24 }, (_, index) =>
      exchange(service.url, {
        bytes: requestHead(`POST ${index % 2 ? HOOK : REGISTER} HTTP/1.1`, chunked),
        endless:
          index % 3
            ? { chunk: spaces, pauseMilliseconds: 5 }
            : { chunk: '1\r\n{\r\n', pauseMilliseconds: 100 },
        milliseconds: 3_000,
      }),
    );
    for (let request = 0; request < 30; request += 1) {
      expect((await me(service.url, token)).status).toBe(200);
      expect(
        (await register(service.url, token, { identityProviderUserId: 'user_meanwhile' })).status,
      ).toBeLessThan(300);
    }
    const answers = await Promise.all(attackers);
    expect(
      answers.flatMap(({ statuses }) => statuses).filter((status) => status < 400 || status >= 500),
    ).toEqual([]);
    // Next.js keeps up to 2 MB of a body for the middleware; the rest is room for a heap that is not yet tidied.
    expect(megabytes() - before).toBeLessThan(24 * 2 + 150);
    expect((await deliver(service.url, userCreated('user_after_endless'))).status).toBe(200);
  },
);

test('a body that is not complete in time is a 408, and the connection is closed', async () => {
  for (const { statuses, closed } of await slow)
    expect({ statuses, closed }).toEqual({ statuses: [408], closed: true });
});

test('a request that is answered before it is complete keeps its connection no longer than another', async () => {
  for (const { statuses, closed } of await slowAndAnswered) {
    expect({ answers: statuses.length, closed }).toEqual({ answers: 1, closed: true });
  }
});

test('line breaks keep no connection alive', async () => {
  const { statuses, closed } = await lineBreaks;
  expect({ statuses, closed }).toEqual({ statuses: [401], closed: true });
});

test('a client that takes nothing of its answers loses its connection', async () => {
  expect((await takesNothing).closed).toBe(true);
});

test('headers that are not complete in time are a 408, and the connection is closed', async () => {
  const { statuses, text, closed } = await slowHeaders;
  expect({ statuses, closed }).toEqual({ statuses: [408], closed: true });
  expect(text).toContain('{"message":"Request timeout"}');
});

test('what was no whole request has one line in the log, and its id in the answer', async () => {
  const [{ text = '' } = {}] = await slow;
  const [, id = 'no id'] = /x-request-id: ([\w-]+)/i.exec(text) ?? [];
  const linesOf = (route: string, status: number) =>
    service.linesWith(`"route":"${route}","status":${status}`);
  const before = linesOf('POST /auth', 400).length;
  await exchange(service.url, {
    bytes: `${requestHead(`POST ${REGISTER} HTTP/1.1`, { 'Content-Length': '100' })}{`,
    milliseconds: 200,
  });
  await expect.poll(() => linesOf('POST /auth', 400)).toHaveLength(before + 1);
  expect(linesOf('POST /auth', 408).filter((line) => line.includes(id))).toHaveLength(1);
  expect(linesOf('POST /auth', 408)).toHaveLength(2);
  expect(linesOf('POST /webhooks', 408)).toHaveLength(2);
  expect(service.output()).not.toMatch(/^Error: aborted/m);
});
