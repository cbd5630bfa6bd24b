import { describe, expect, test } from 'vitest';
import { bearer, register, send, tokenFor } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const service = sharedService();
const { rowsOf } = service.database;
const token = tokenFor(service.idp, 'user_caller');

const submit = (body: unknown) => register(service.url, token, body);

describe('POST /auth/v1/register', () => {
  test('The register route responds 201 for a new id, and then 200 with the same internal id', async () => {
    const first = await submit({ identityProviderUserId: 'user_new' });
    const second = await submit({ identityProviderUserId: 'user_new' });
    expect(first).toMatchObject({
      status: 201,
      body: { userId: expect.stringMatching(UUID_V7), identityProviderUserId: 'user_new' },
    });
    expect(second).toMatchObject({ status: 200, body: first.body });
    expect(Object.keys(Object(first.body))).toEqual(['userId', 'identityProviderUserId']);
    expect(await rowsOf('user_new')).toMatchObject([{ id: Object(first.body).userId }]);
  });

  test('The register route responds 200 to a caller that registers its own id, because the guard of the route has already registered the caller', async () => {
    const self = await register(service.url, tokenFor(service.idp, 'user_self'), {
      identityProviderUserId: 'user_self',
    });
    expect(self.status).toBe(200);
    expect(await rowsOf('user_self')).toMatchObject([{ id: Object(self.body).userId }]);
  });

  test('An authenticated caller may register the id of another user', async () => {
    const other = await register(service.url, tokenFor(service.idp, 'user_one'), {
      identityProviderUserId: 'user_two',
    });
    expect(other.status).toBe(201);
  });

  test('A response of the register route, including the response to an invalid body, is JSON with `no-store` and a request id', async () => {
    for (const body of [{ identityProviderUserId: 'user_headers' }, '{']) {
      const { headers } = await submit(body);
      expect(headers.get('content-type')).toBe('application/json');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test('The service returns and logs a valid request id from the caller, even for a percent-encoded path, and replaces an invalid request id', async () => {
    const withId = (id: string) =>
      send(`${service.url}/auth/v1/register`, { method: 'POST', headers: { 'x-request-id': id } });
    expect((await withId('trace-1.a:b_C')).headers.get('x-request-id')).toBe('trace-1.a:b_C');
    const encoded = await send(`${service.url}/auth/v1/registe%72`, {
      headers: { 'x-request-id': 'trace-2' },
    });
    expect(encoded.headers.get('x-request-id')).toBe('trace-2');
    const line = '"requestId":"trace-2","route":"none","status":404';
    await expect.poll(() => service.linesWith(line)).toHaveLength(1);
    for (const id of ['a'.repeat(65), 'with space', '<script>']) {
      expect((await withId(id)).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test.each([
    ['white space at both ends', ' user '],
    ['upper case', 'USER_new'],
    ['characters outside ASCII', 'usér_😀_用户'],
    ['255 characters', 'u'.repeat(255)],
    ['255 characters of two UTF-16 units each', '😀'.repeat(255)],
    ['an SQL statement', `'; DROP TABLE users; --`],
    ['the name of a property that all objects have', '__proto__'],
  ])('The register route stores an id unchanged: %s', async (_what, identityProviderUserId) => {
    const { status, body } = await submit({ identityProviderUserId });
    expect(status).toBe(201);
    expect(body).toMatchObject({ identityProviderUserId });
    expect(await rowsOf(identityProviderUserId)).toMatchObject([{ id: Object(body).userId }]);
  });

  test('The register route ignores unknown fields', async () => {
    const response = await submit({ identityProviderUserId: 'user_fields', userId: 'mine', created: false });
    expect(response.status).toBe(201);
    expect(Object(response.body).userId).toMatch(UUID_V7);
  });

  test.each([
    ['no body', '', 'The request body must be JSON in UTF-8'],
    ['not JSON', '{"identityProviderUserId": "user_x"', 'The request body must be JSON in UTF-8'],
    ['not UTF-8', new Uint8Array([0x22, 0xff, 0x22]), 'The request body must be JSON in UTF-8'],
    ['a string', '"user_x"', 'The request body must be a JSON object'],
    ['null', 'null', 'The request body must be a JSON object'],
    ['an array', '["user_x"]', 'The request body must be a JSON object'],
    ['no id', '{}', 'identityProviderUserId must be a string'],
    [
      'an id inside of __proto__',
      '{"__proto__":{"identityProviderUserId":"x"}}',
      'identityProviderUserId must be a string',
    ],
    ['a number as id', '{"identityProviderUserId":1}', 'identityProviderUserId must be a string'],
    ['null as id', '{"identityProviderUserId":null}', 'identityProviderUserId must be a string'],
    ['an empty id', '{"identityProviderUserId":""}', 'identityProviderUserId must not be empty'],
    [
      'an id of 256 characters',
      JSON.stringify({ identityProviderUserId: 'u'.repeat(256) }),
      'identityProviderUserId must have at most 255 characters',
    ],
    [
      'an id with a NUL',
      String.raw`{"identityProviderUserId":"a\u0000b"}`,
      'identityProviderUserId must be well-formed Unicode without NUL',
    ],
    [
      'an id with half a surrogate pair',
      String.raw`{"identityProviderUserId":"a\ud800"}`,
      'identityProviderUserId must be well-formed Unicode without NUL',
    ],
  ])(
    'The register route responds 400 to an invalid body and describes the error: %s',
    async (_what, body, message) => {
      expect(await submit(body)).toMatchObject({ status: 400, body: { message } });
    },
  );

  test('The register route accepts a body of 16 KiB and responds 413 to a larger body', async () => {
    const padded = (bytes: number) => {
      const json = JSON.stringify({ identityProviderUserId: 'user_padded' });
      return json + ' '.repeat(bytes - json.length);
    };
    expect((await submit(padded(16 * 1024))).status).toBe(201);
    expect(await submit(padded(16 * 1024 + 1))).toMatchObject({
      status: 413,
      body: { message: 'Payload too large' },
    });
  });

  test('The register route responds 413 to a body of 40 KiB without Content-Length', async () => {
    const stream = new ReadableStream({
      start(controller) {
        for (let sent = 0; sent < 40; sent += 1) controller.enqueue(new Uint8Array(1024).fill(32));
        controller.close();
      },
    });
    const response = await send(`${service.url}/auth/v1/register`, {
      method: 'POST',
      headers: bearer(token),
      body: stream,
      duplex: 'half',
    });
    expect(response).toMatchObject({ status: 413, body: { message: 'Payload too large' } });
  });

  test('The register route responds 401 without a credential, even if the body is invalid', async () => {
    const response = await send(`${service.url}/auth/v1/register`, { method: 'POST', body: '{' });
    expect(response).toMatchObject({ status: 401, body: { message: 'Unauthorized' } });
  });

  test('The register route responds 405 to GET', async () => {
    expect((await send(`${service.url}/auth/v1/register`, { headers: bearer(token) })).status).toBe(405);
  });
});
