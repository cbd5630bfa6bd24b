import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inParallel } from '../harness/parallel';
import { exchange, requestHead } from '../harness/raw-http';
import {
  bearer,
  deliver,
  HOOK,
  ME,
  me,
  now,
  REGISTER,
  register,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';
import { HEADERS, type HostileRequest, hostileHeaders, hostileRequest, MARK } from './hostile-request';

/** The same seed generates the same requests. The number has no special meaning. */
const SEED = 20_261_121;
const runs = (numRuns: number) => ({ numRuns, seed: SEED, endOnFailure: true });

// As in production, CLERK_FAPI_URL is not set, so the service does not proxy requests to the Clerk emulator.
const service = stopAfterAll(await startTestService({ environment: { CLERK_FAPI_URL: '' } }));
const token = tokenFor(service.idp, 'user_caller');

test('A webhook delivery whose body, id or timestamp was changed after it was signed gets a 400 and registers no user', async () => {
  const body = JSON.stringify({ type: 'user.created', data: { id: 'user_tampered', note: 'é' } });
  const signed = () => ({ body, id: 'msg_tampered', timestamp: String(now()) });
  const Change = fc.record({
    part: fc.constantFrom('body' as const, 'id' as const, 'timestamp' as const),
    at: fc.nat(),
    removed: fc.nat({ max: 1 }),
    inserted: fc.oneof(fc.string({ maxLength: 2 }), fc.constantFrom('\0', '\ufeff', '\r\n')),
  });
  await fc.assert(
    fc.asyncProperty(Change, async ({ part, at, removed, inserted }) => {
      const original = signed();
      const text = original[part];
      const start = at % text.length;
      const changed = text.slice(0, start) + inserted + text.slice(start + removed);
      fc.pre(changed !== text && (part === 'body' || /^[\x21-\x7e]+$/.test(changed)));
      const sent = { ...original, [part]: changed };
      const headers = {
        ...signatureHeaders(body, original),
        'svix-id': sent.id,
        'svix-timestamp': sent.timestamp,
      };
      expect(await deliver(service.url, sent.body, headers)).toMatchObject({
        status: 400,
        body: { message: 'Invalid webhook signature' },
      });
    }),
    runs(150),
  );
  expect(await service.database.users()).toEqual([]);
});

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

test('The register route accepts only well-formed ids of 1 to 255 code points without a NUL, and returns them', async () => {
  const Id = fc.oneof(fc.string({ unit: 'binary', maxLength: 300, size: 'max' }), fc.jsonValue());
  await fc.assert(
    fc.asyncProperty(Id, fc.jsonValue(), async (identityProviderUserId, other) => {
      const { status, body } = await register(service.url, token, { other, identityProviderUserId });
      const isValid =
        typeof identityProviderUserId === 'string' &&
        identityProviderUserId.isWellFormed() &&
        /^[^\0]{1,255}$/su.test(identityProviderUserId);
      expect([200, 201].includes(status)).toBe(isValid);
      if (isValid) expect(body).toMatchObject({ identityProviderUserId });
      else expect(status).toBe(400);
    }),
    runs(100),
  );
});

test('The register route responds 400 or 413 to any bytes and any JSON without an id', async () => {
  const Body = fc.oneof(
    fc.uint8Array({ maxLength: 20_000, size: 'max' }).map((bytes) => new Uint8Array(bytes)),
    fc.jsonValue().map((value) => JSON.stringify(value)),
    fc.constantFrom('['.repeat(8000), '['.repeat(8000) + ']'.repeat(8000), '{"a":'.repeat(3000)),
    fc.constant(`{"identityProviderUserId":${'9'.repeat(16_000)}}`),
  );
  await fc.assert(
    fc.asyncProperty(Body, async (body) => {
      expect([400, 413]).toContain((await register(service.url, token, body)).status);
    }),
    runs(100),
  );
});

test('Keys such as __proto__ in the body of a registration or a webhook delivery do not change later responses', async () => {
  for (const key of ['__proto__', 'constructor', 'prototype']) {
    const poison = `{"identityProviderUserId":"user_${key}","${key}":{"isAuthenticated":1,"status":500,"userId":"x","prototype":{"userId":"x"}}}`;
    expect((await register(service.url, token, poison)).status).toBe(201);
    const event = `{"type":"test.updated","${key}":{"type":"user.created"},"data":{"${key}":{"id":"user_polluted"}}}`;
    expect((await deliver(service.url, event)).status).toBe(200);
  }
  expect((await me(service.url, token)).body).toEqual({
    isAuthenticated: true,
    userId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    identityProviderUserId: 'user_caller',
  });
  expect(await service.database.users('user_polluted')).toEqual([]);
});

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
    runs(120),
  );
  expect(new Set(await service.database.users('user\\__%ed'))).toEqual(
    new Set(['user_announced', 'user_registered']),
  );
});
