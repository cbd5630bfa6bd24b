import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attack } from '../harness/hostile/attack';
import { hostileRequests } from '../harness/hostile/hostile-request';
import {
  bearer,
  cookie,
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
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';

const service = stopAfterAll(await startTestService());
const token = tokenFor(service.idp, 'user_caller');
await me(service.url, token);

const runs = (numRuns: number) => ({ numRuns, endOnFailure: true });

describe('A delivery that was changed after it was signed', () => {
  const rejected = { status: 400, body: { message: 'Invalid webhook signature' } };
  const Event = fc
    .record({ id: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }), note: fc.jsonValue() })
    .map(({ id, note }) => JSON.stringify({ type: 'user.created', data: { id: `tampered ${id}`, note } }));
  /** Characters that reach the server unchanged in a header. */
  const Visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
  const replaced = (text: string, at: number, by: string) =>
    text.slice(0, at) + by + text.slice(at + by.length);

  test('A webhook delivery with one changed byte in its body gets a 400', async () => {
    await fc.assert(
      fc.asyncProperty(Event, fc.nat(), fc.integer({ min: 1, max: 255 }), async (body, where, difference) => {
        const bytes = Buffer.from(body);
        const changed = new Uint8Array(bytes);
        const at = where % bytes.length;
        changed[at] = (changed[at] ?? 0) ^ difference;
        expect(await deliver(service.url, changed, signatureHeaders(body))).toMatchObject(rejected);
      }),
      runs(60),
    );
  });

  test('A webhook delivery with inserted or removed bytes gets a 400', async () => {
    const Position = fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true }));
    const spaces = [' ', '\n', '\r\n', '\t', '\ufeff', '\u00a0', '\0'].map((text) => Buffer.from(text));
    const Inserted = fc.oneof(fc.uint8Array({ maxLength: 3 }), fc.constantFrom(...spaces));
    await fc.assert(
      fc.asyncProperty(Event, Position, Inserted, async (body, position, inserted) => {
        const bytes = Buffer.from(body);
        const removed = inserted.length === 0 ? 1 : 0;
        const at = Math.round(position * (bytes.length - removed));
        const changed = Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + removed)]);
        const response = await deliver(service.url, new Uint8Array(changed), signatureHeaders(body));
        expect(response).toMatchObject(rejected);
      }),
      runs(80),
    );
  });

  test('A webhook delivery with one changed byte in its id gets a 400', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uuid(), fc.nat(), Visible, async (uuid, where, by) => {
        const id = `msg_${uuid}`;
        const changed = replaced(id, where % id.length, by);
        fc.pre(changed !== id);
        const body = userCreated('tampered id');
        const headers = { ...signatureHeaders(body, { id }), 'svix-id': changed };
        expect(await deliver(service.url, body, headers)).toMatchObject(rejected);
      }),
      runs(60),
    );
  });

  test('A webhook delivery with one changed byte in its timestamp gets a 400', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), Visible, async (where, by) => {
        const timestamp = String(now());
        const changed = replaced(timestamp, where % timestamp.length, by);
        fc.pre(changed !== timestamp);
        const body = userCreated('tampered timestamp');
        const headers = { ...signatureHeaders(body, { timestamp }), 'svix-timestamp': changed };
        expect(await deliver(service.url, body, headers)).toMatchObject(rejected);
      }),
      runs(60),
    );
  });

  test('Webhook deliveries that were changed after they were signed do not register a user', async () => {
    expect(await service.database.users('tampered%')).toEqual([]);
  });
});

describe('Generated bodies for the register route', () => {
  const allowed = [200, 201, 400, 413];
  const check = async (body: unknown) => {
    const response = await register(service.url, token, body);
    expect(allowed).toContain(response.status);
    return response;
  };

  test('The register route responds 200, 201, 400 or 413 to any JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        await check(JSON.stringify(value));
      }),
      runs(60),
    );
  });

  test('The register route accepts only well-formed ids of 1 to 255 code points without a NUL, and returns them', async () => {
    const Id = fc.oneof(fc.string({ unit: 'binary', maxLength: 300, size: 'max' }), fc.jsonValue());
    await fc.assert(
      fc.asyncProperty(Id, fc.jsonValue(), async (identityProviderUserId, other) => {
        const { status, body } = await check(JSON.stringify({ other, identityProviderUserId }));
        if (status < 300) expect(body).toMatchObject({ identityProviderUserId });
        const fits =
          typeof identityProviderUserId === 'string' &&
          identityProviderUserId.isWellFormed() &&
          /^[^\0]{1,255}$/su.test(identityProviderUserId);
        expect(status < 300).toBe(fits);
      }),
      runs(100),
    );
  });

  test('The register route responds 200, 201, 400 or 413 to any bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 20_000, size: 'max' }), async (bytes) => {
        await check(new Uint8Array(bytes));
      }),
      runs(40),
    );
  });

  test.each([
    ['8,000 nested arrays that are not closed', '['.repeat(8000)],
    ['8,000 nested arrays', '['.repeat(8000) + ']'.repeat(8000)],
    ['3,000 nested objects that are not closed', '{"a":'.repeat(3000)],
    ['many keys', `{${Array.from({ length: 1500 }, (_, key) => `"k${key}":0`).join(',')}}`],
    ['a huge number', `{"identityProviderUserId":${'9'.repeat(16_000)}}`],
    ['a duplicate key', '{"identityProviderUserId":1,"identityProviderUserId":[]}'],
  ])('The register route responds 400 to a body with %s', async (_what, body) => {
    expect((await check(body)).status).toBe(400);
  });

  test('Keys such as __proto__ in the body of a registration or a webhook delivery do not change later responses', async () => {
    for (const key of ['__proto__', 'constructor', 'prototype']) {
      const poison = `{"identityProviderUserId":"user_${key}","${key}":{"isAuthenticated":1,"status":500,"userId":"x","prototype":{"userId":"x"}}}`;
      expect((await check(poison)).status).toBe(201);
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
});

interface GeneratedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  /** Body of a POST. The default is `{}`. */
  readonly body?: string;
}

/** Sends a request with `node:http`, because `fetch` does not let a caller set some headers, such as `Host`. */
function sendRequest({
  method,
  path,
  headers,
  body = '{}',
}: GeneratedRequest): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(service.url);
    const request = httpRequest(
      { host: 'localhost', port, method, path, headers, agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response
          .on('data', (chunk: Buffer) => chunks.push(chunk))
          .on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(chunks).toString(),
            }),
          );
      },
    );
    request.on('error', reject).setTimeout(20_000, () => request.destroy(new Error('No response')));
    request.end(method === 'POST' ? body : undefined);
  });
}

describe('Generated headers', () => {
  const NAMES = [
    'accept',
    'accept-language',
    'authorization',
    'clerk-proxy-url',
    'content-type',
    'cookie',
    'forwarded',
    'host',
    'if-none-match',
    'next-action',
    'next-router-prefetch',
    'next-router-state-tree',
    'next-url',
    'origin',
    'purpose',
    'range',
    'referer',
    'sec-fetch-dest',
    'sec-fetch-mode',
    'svix-id',
    'svix-signature',
    'svix-timestamp',
    'user-agent',
    'webhook-id',
    'webhook-signature',
    'webhook-timestamp',
    'x-clerk-auth-message',
    'x-clerk-auth-reason',
    'x-clerk-auth-signature',
    'x-clerk-auth-status',
    'x-clerk-auth-token',
    'x-clerk-debug',
    'x-clerk-request-data',
    'x-clerk-clerk-url',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-port',
    'x-forwarded-proto',
    'x-http-method-override',
    'x-invoke-error',
    'x-invoke-path',
    'x-invoke-status',
    'x-matched-path',
    'x-method-override',
    'x-middleware-invoke',
    'x-middleware-next',
    'x-middleware-override-headers',
    'x-middleware-prefetch',
    'x-middleware-rewrite',
    'x-middleware-set-cookie',
    'x-middleware-subrequest',
    'x-nextjs-data',
    'x-now-route-matches',
    'x-original-url',
    'x-prerender-revalidate',
    'x-request-id',
    'x-rewrite-url',
  ];
  const forged = `${Buffer.from('{"alg":"none","kid":"x"}').toString('base64url')}.${Buffer.from('{"sub":"user_forged"}').toString('base64url')}.`;
  const Value = fc.oneof(
    fc.string({
      unit: fc
        .integer({ min: 0x21, max: 0xff })
        .filter((code) => code !== 0x7f)
        .map((code) => String.fromCharCode(code)),
      maxLength: 60,
    }),
    fc.constantFrom(
      '',
      '*',
      '1',
      '500',
      'text/html',
      'document',
      'OPTIONS',
      'signed-in',
      'prefetch',
      '/users/v1/me',
      'middleware',
      'src/middleware:nowaymiddleware',
      'middleware:middleware:middleware:middleware:middleware',
      'evil.example',
      'https://evil.example/x',
      'javascript:alert(1)',
      '127.0.0.1, ::1',
      `Bearer ${forged}`,
      'Bearer ak_0123456789',
      'Bearer ..',
      cookie(forged).cookie,
      '__clerk_handshake=x; __clerk_redirect_count=9; __refresh_x=y',
      '__session=%E0%A4%A; =; ;;=x',
      '__prerender_bypass=x; __next_preview_data=x',
      'v1,AAAA v1a,BBBB',
      String(now()),
      '%00%0d%0aSet-Cookie:x=y',
      'a'.repeat(4000),
    ),
  );
  const Query = fc.constantFrom(
    '',
    '?__clerk_handshake=x',
    '?__clerk_handshake_nonce=x&__clerk_redirect_url=https://evil.example',
    '?__clerk_db_jwt=x&__clerk_synced=true&__clerk_hs_reason=x',
    '?__clerk_ticket=x&__clerk_status=x',
    '?_rsc=1&__nextLocale=xx&nxtPx=1',
    '?%00=%ff&a[]=b&__proto__[x]=y',
  );
  const Headers = fc.dictionary(fc.constantFrom(...NAMES), Value, { maxKeys: 8 });
  /** Expects that the response does not redirect and contains neither HTML, the host evil.example nor an SDK header. */
  const expectPlain = ({ headers, text }: Awaited<ReturnType<typeof sendRequest>>) => {
    expect(headers.location).toBeUndefined();
    expect(headers['content-type'] ?? '').not.toContain('html');
    expect(text).not.toContain('evil.example');
    expect(Object.keys(headers).filter((name) => name.startsWith('x-clerk'))).toEqual([]);
  };
  const Request = fc
    .record({
      method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD'),
      pathname: fc.constantFrom(REGISTER, HOOK, ME, '/users/v1/unknown', '/auth/v1', '/webhooks/x'),
      query: Query,
      headers: Headers,
    })
    .map(({ method, pathname, query, headers }) => ({ method, path: pathname + query, headers }));

  test('With generated headers and no valid credential, an API path responds with a 4xx, without a redirect or HTML', async () => {
    await fc.assert(
      fc.asyncProperty(Request, async (generated) => {
        const response = await sendRequest(generated);
        expect([400, 401, 404, 405, 408, 417]).toContain(response.status);
        expectPlain(response);
      }),
      runs(120),
    );
    expect(await service.database.users('user_forged')).toEqual([]);
  });

  test('Generated headers do not affect a request with a valid session or signature', async () => {
    const event = userCreated('user_good_announced');
    // Signs the event again for each request, because a signature is valid only for a few minutes.
    const valid = () => ({
      [ME]: { method: 'GET', headers: bearer(token), expected: '"identityProviderUserId":"user_caller"' },
      [REGISTER]: {
        method: 'POST',
        headers: bearer(token),
        body: '{"identityProviderUserId":"user_good_registered"}',
        expected: '"identityProviderUserId":"user_good_registered"',
      },
      [HOOK]: { method: 'POST', headers: signatureHeaders(event), body: event, expected: '"received":true' },
    });
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(ME, REGISTER, HOOK), Query, Headers, async (pathname, query, odd) => {
        const { expected, ...request } = valid()[pathname];
        const headers = { ...odd, ...request.headers };
        const response = await sendRequest({ ...request, path: pathname + query, headers });
        seen.add(`${pathname} ${response.status}`);
        expect([200, 201]).toContain(response.status);
        expect(response.text).toContain(expected);
        expectPlain(response);
      }),
      runs(120),
    );
    expect(seen).toEqual(new Set([`${ME} 200`, `${REGISTER} 201`, `${REGISTER} 200`, `${HOOK} 200`]));
    expect(new Set(await service.database.users('user_good%'))).toEqual(
      new Set(['user_good_announced', 'user_good_registered']),
    );
  });

  test.each(NAMES.filter((name) => name.startsWith('x-middleware') || name.startsWith('x-invoke')))(
    'The header %s does not bypass the session check',
    async (name) => {
      for (const value of ['1', 'middleware', '/users/v1/me', '200']) {
        const { status } = await sendRequest({
          method: 'GET',
          path: ME,
          headers: { [name]: value, purpose: 'prefetch' },
        });
        expect(status).toBe(401);
      }
    },
  );

  test('A request with a header of 20,000 characters gets a 431, and a request with 900 short headers or 1,000 cookies gets no 431', async () => {
    const huge = await sendRequest({ method: 'GET', path: ME, headers: { 'x-huge': 'a'.repeat(20_000) } });
    expect(huge.status).toBe(431);
    const many = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`x-${index}`, 'a']));
    expect((await sendRequest({ method: 'GET', path: ME, headers: many })).status).toBe(401);
    const cookies = { cookie: '__session=x; '.repeat(1000) };
    expect((await sendRequest({ method: 'GET', path: ME, headers: cookies })).status).toBe(401);
  });
});

test('After all requests with tampered or generated content, the service still works, and its log contains no 5xx', async () => {
  expect((await me(service.url, token)).status).toBe(200);
  expect(service.linesWith('"msg":"request"').length).toBeGreaterThan(500);
  expect(service.linesWith('"status":5')).toEqual([]);
});

/** Seed of the generated requests. The same seed generates the same requests. The number has no special meaning. */
const SEED = 20_261_121;

test('Hostile requests get no 5xx, leave no connection open, register no user, and do not make the service log client input', async () => {
  // As in production, CLERK_FAPI_URL is not set, so the service does not proxy requests to the Clerk emulator.
  const production = stopAfterTest(await startTestService({ environment: { CLERK_FAPI_URL: '' } }));
  expect(await attack(production, hostileRequests(1_000, SEED))).toEqual([]);
}, 240_000);
