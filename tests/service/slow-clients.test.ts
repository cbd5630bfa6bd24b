import { beforeAll, expect, test } from 'vitest';
import { largestFile } from '../harness/build';
import { exchange, type RawRequest, requestHead } from '../harness/hostile/raw-http';
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

/** Starts clients that do not end their requests or do not read the responses. The service has to close their connections. */
function startSlowClients() {
  const unfinished = { 'Content-Length': '100' };
  const send = (request: RawRequest) => exchange(service.url, request);
  return {
    incompleteBodies: Promise.all([
      send({ bytes: `${requestHead(`POST ${REGISTER} HTTP/1.1`, { ...bearer(token), ...unfinished })}{` }),
      send({ bytes: `${requestHead(`POST ${REGISTER} HTTP/1.1`, unfinished)}{` }),
      send({ bytes: `${requestHead(`POST ${HOOK} HTTP/1.1`, unfinished)}{` }),
      send({
        bytes: requestHead(`POST ${HOOK} HTTP/1.1`, { 'Transfer-Encoding': 'chunked' }),
        endless: { chunk: '1\r\n{\r\n', pauseMilliseconds: 500 },
      }),
    ]),
    /** Requests that get their response before their body is complete. */
    unreadBodies: Promise.all(
      [`GET ${ME}`, `HEAD ${ME}`, 'GET /', 'GET /icon.svg', 'GET /_next/static/x.js', 'DELETE /unknown'].map(
        (line) =>
          send({
            bytes: `${line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n`,
            endless: { chunk: 'x', pauseMilliseconds: 1_000 },
          }),
      ),
    ),
    lineBreaks: send({
      bytes: `GET ${ME} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      endless: { chunk: '\r\n', pauseMilliseconds: 2_000 },
    }),
    /** A client that requests large files and does not read the responses. */
    unreadResponses: send({
      bytes: requestHead(`GET ${largestFile()} HTTP/1.1`, { Connection: 'keep-alive' }).repeat(32),
      endless: { chunk: '\r\n', pauseMilliseconds: 500 },
      pauseReading: true,
    }),
    endlessHeaders: send({
      bytes: `GET ${ME} HTTP/1.1\r\nHost: localhost\r\n`,
      endless: { chunk: 'X-A: b\r\n', pauseMilliseconds: 1_000 },
    }),
  };
}

/** Exchanges in flight. They start before the tests, because the service closes these connections only after many seconds. */
let slowClients: ReturnType<typeof startSlowClients>;
beforeAll(() => {
  slowClients = startSlowClients();
});

test.skipIf(!hasProc)(
  `While many clients send endless bodies, other requests succeed and the memory use is limited${notRun}`,
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
    const responses = await Promise.all(attackers);
    expect(
      responses.flatMap(({ statuses }) => statuses).filter((status) => status < 400 || status >= 500),
    ).toEqual([]);
    // Next.js buffers up to 2 MB of each body for the middleware. The additional 150 MB allow for garbage that is not yet
    // collected.
    expect(megabytes() - before).toBeLessThan(24 * 2 + 150);
    expect((await deliver(service.url, userCreated('user_after_endless'))).status).toBe(200);
  },
);

test('A request whose body is incomplete at the timeout gets a 408, and the connection is closed', async () => {
  for (const { statuses, closed } of await slowClients.incompleteBodies)
    expect({ statuses, closed }).toEqual({ statuses: [408], closed: true });
});

test('After a response to an incomplete request, the server closes the connection even if the client keeps sending the body', async () => {
  for (const { statuses, closed } of await slowClients.unreadBodies) {
    expect({ responses: statuses.length, closed }).toEqual({ responses: 1, closed: true });
  }
});

test('If a client sends only line breaks after its first request, the server closes the connection', async () => {
  const { statuses, closed } = await slowClients.lineBreaks;
  expect({ statuses, closed }).toEqual({ statuses: [401], closed: true });
});

test('The server closes the connection of a client that does not read its responses', async () => {
  expect((await slowClients.unreadResponses).closed).toBe(true);
});

test('A request whose headers are incomplete at the timeout gets a 408, and the connection is closed', async () => {
  const { statuses, text, closed } = await slowClients.endlessHeaders;
  expect({ statuses, closed }).toEqual({ statuses: [408], closed: true });
  expect(text).toContain('{"message":"Request timeout"}');
});

test('Each incomplete request is logged once, and the log line of a 408 contains the request id of the response', async () => {
  const [{ text = '' } = {}] = await slowClients.incompleteBodies;
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
