import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inParallel } from '../harness/parallel';
import { exchange, requestHead } from '../harness/raw-http';
import { bearer, HOOK, ME, me, REGISTER, signatureHeaders, tokenFor, userCreated } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';
import { HEADERS, type HostileRequest, hostileHeaders, hostileRequest, MARK } from './hostile-request';

/** The same seed generates the same requests. The number has no special meaning. */
const SEED = 20_261_121;

// As in production, CLERK_FAPI_URL is not set, so the service does not proxy requests to the Clerk emulator.
const service = stopAfterAll(await startTestService({ environment: { CLERK_FAPI_URL: '' } }));
const token = tokenFor(service.idp, 'user_caller');

test('Hostile requests get no 5xx, leave no connection open, register no user, and do not make the service log client input', async () => {
  /** Statuses of routes, pages, static files and rejections of this service. Node.js itself sends 100. */
  const known = new Set([
    100, 200, 204, 206, 304, 307, 400, 401, 404, 405, 408, 411, 412, 413, 416, 417, 431,
  ]);
  const isApi = (line: string) => /^\w+ [^? ]*\/v\d+[/ ?]/.test(line);
  const problems: string[] = [];
  const send = async ({ line, bytes }: HostileRequest) => {
    // The provider's emulator responds to a proxied request.
    if (line.includes('/__clerk')) return;
    const { statuses, text, closed } = await exchange(service.url, bytes, 30_000);
    const found = [
      ...(closed ? [] : ['the connection is still open']),
      ...statuses.filter((status) => !known.has(status)).map((status) => `status ${status}`),
      ...(isApi(line) && /content-type: text\/html/i.test(text) ? ['HTML from the API'] : []),
      ...(/^\s+at .*\.js:\d|node_modules/m.test(text) ? ['a stack trace'] : []),
    ];
    if (found.length > 0) problems.push(`${found.join()}: ${JSON.stringify(bytes.slice(0, 1500))}`);
  };
  await inParallel(24, fc.sample(hostileRequest, { numRuns: 1_000, seed: SEED }), send);
  // The log is in order, so the line of this request is the last one.
  await me(service.url, token);
  await expect.poll(() => service.linesWith('"status":200').at(-1)).toContain(`"route":"GET ${ME}"`);
  const lines = service.output().split('\n');
  problems.push(...lines.filter((line) => line.toLowerCase().includes(MARK) || /"status":5\d\d/.test(line)));
  expect(problems).toEqual([]);
  expect(await service.database.users()).toEqual(['user_caller']);
}, 240_000);

test('Hostile headers do not give a request a session or a signature, and do not affect a request that has one', async () => {
  const event = userCreated('user_announced');
  const body = '{"identityProviderUserId":"user_registered"}';
  // Signs the event again for each request, because a signature is valid only for a few minutes.
  const valid = () => [
    { line: `GET ${ME}`, headers: bearer(token), body: '' },
    { line: `POST ${REGISTER}`, headers: bearer(token), body },
    { line: `POST ${HOOK}`, headers: signatureHeaders(event), body: event },
  ];
  const send = (line: string, headers: Record<string, string>, body: string) => {
    const length = { 'Content-Length': String(Buffer.byteLength(body)) };
    const head = requestHead(`${line} HTTP/1.1`, { ...headers, ...length });
    return exchange(service.url, Buffer.from(head + body).toString('latin1'));
  };
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: 2 }), hostileHeaders(HEADERS, 8), async (index, hostile) => {
      const { line = '', headers = {}, body = '' } = valid()[index] ?? {};
      const names = Object.keys(headers).map((name) => name.toLowerCase());
      const added = Object.fromEntries(hostile.filter(([name]) => !names.includes(name.toLowerCase())));
      for (const [sent, statuses] of [
        [added, [400, 401]],
        [{ ...added, ...headers }, [200, 201]],
      ] as const) {
        const response = await send(line, sent, body);
        expect(statuses).toContain(response.statuses[0]);
        expect(response.text).not.toMatch(/^(?:location|x-clerk\S*|content-type: text\/html)/im);
      }
    }),
    { numRuns: 120, seed: SEED, endOnFailure: true },
  );
  expect(new Set(await service.database.users('user\\__%ed'))).toEqual(
    new Set(['user_announced', 'user_registered']),
  );
});
