import { expect, test, vi } from 'vitest';
import { RegisterUserRequest } from '#lib/api/schemas';
import { limitBody, readJson } from '#lib/core/body';

const sent = (body: string | Uint8Array<ArrayBuffer> | null) =>
  new Request('http://localhost/', { method: 'POST', body });
const rules = { maxBytes: 8, notUtf8: 'No text' };

test.each(['', '12345678', '\ufeffé', 'a\0b', null])(
  'A body within the limit is read unchanged: %j',
  async (body) => {
    expect(await limitBody(sent(body), rules).text()).toBe(body ?? '');
  },
);

test('A body above the limit is a 413, and a body that is not valid UTF-8 a 400', async () => {
  await expect(limitBody(sent('123456789'), rules).text()).rejects.toMatchObject({
    name: 'HttpError',
    status: 413,
    message: 'Payload too large',
  });
  await expect(limitBody(sent(Uint8Array.of(0xff)), rules).text()).rejects.toMatchObject({
    status: 400,
    message: 'No text',
  });
});

const NOT_JSON = 'The request body must be JSON in UTF-8';
const NO_OBJECT = 'The request body must be a JSON object';
const NO_STRING = 'identityProviderUserId must be a string';
const NOT_WELL_FORMED = 'identityProviderUserId must be well-formed Unicode without NUL';

test.each<[what: string, body: string | Uint8Array<ArrayBuffer>, message: string]>([
  ['no body', '', NOT_JSON],
  ['not JSON', '{"identityProviderUserId": "user_x"', NOT_JSON],
  ['null', 'null', NO_OBJECT],
  ['an array', '["user_x"]', NO_OBJECT],
  ['no id', '{}', NO_STRING],
  ['an id inside of __proto__', '{"__proto__":{"identityProviderUserId":"x"}}', NO_STRING],
  ['a number as id', '{"identityProviderUserId":1}', NO_STRING],
  ['an empty id', '{"identityProviderUserId":""}', 'identityProviderUserId must not be empty'],
  [
    'an id of 256 characters',
    `{"identityProviderUserId":"${'u'.repeat(256)}"}`,
    'identityProviderUserId must have at most 255 characters',
  ],
  ['an id with a NUL', String.raw`{"identityProviderUserId":"a\u0000b"}`, NOT_WELL_FORMED],
  ['half of a surrogate pair', String.raw`{"identityProviderUserId":"a\ud800"}`, NOT_WELL_FORMED],
])(
  'An invalid body of the register route is a 400 that describes the error: %s',
  async (_what, body, message) => {
    await expect(readJson(sent(body), RegisterUserRequest)).rejects.toMatchObject({ status: 400, message });
  },
);

test.each([
  ['white space at both ends', ' user '],
  ['255 characters of two UTF-16 units each', '😀'.repeat(255)],
  ['the name of a property that all objects have', '__proto__'],
])(
  'The register route reads an id unchanged and ignores other fields: %s',
  async (_what, identityProviderUserId) => {
    const more = '"userId":"mine","__proto__":{"polluted":true}';
    const body = JSON.stringify({ identityProviderUserId }).replace('}', `,${more}}`);
    expect(await readJson(sent(body), RegisterUserRequest)).toEqual({ identityProviderUserId });
    expect(Reflect.get({}, 'polluted')).toBeUndefined();
  },
);

/** Returns a request whose body is a stream. */
function streamed(body: ReadableStream<Uint8Array>) {
  const init: RequestInit & { duplex: 'half' } = { method: 'POST', body, duplex: 'half' };
  return new Request('http://localhost/', init);
}

test('The error for a body that cannot be read has a message without internal details', async () => {
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.error(new Error('connect ECONNRESET 10.0.0.1'));
    },
  });
  await expect(limitBody(streamed(body), rules).text()).rejects.toMatchObject({
    status: 400,
    message: 'The request body could not be read',
  });
});

test('The chunks of a body are joined. Above the limit, none is read, and the body is cancelled, also if this fails', async () => {
  let chunks = 0;
  const cancel = vi.fn(() => Promise.reject(new Error('connect ECONNRESET 10.0.0.1')));
  /** Returns a body of `last` chunks with three bytes each. */
  const chunked = (last: number) =>
    new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          chunks += 1;
          controller.enqueue(new TextEncoder().encode('abc'));
          if (chunks === last) controller.close();
        },
        cancel,
      },
      { highWaterMark: 0 },
    );
  const read = (last: number) => limitBody(streamed(chunked(last)), rules).text();
  expect(await read(2)).toBe('abcabc');
  chunks = 0;
  await expect(read(100)).rejects.toMatchObject({ status: 413 });
  expect([chunks, cancel.mock.calls.length]).toEqual([3, 1]);
});

test('The register route reads a body of 16 KiB, and a longer body is a 413', async () => {
  const padded = (bytes: number) => '{"identityProviderUserId":"user_1"}'.padEnd(bytes);
  expect(await readJson(sent(padded(16 * 1024)), RegisterUserRequest)).toBeDefined();
  await expect(readJson(sent(padded(16 * 1024 + 1)), RegisterUserRequest)).rejects.toMatchObject({
    status: 413,
    message: 'Payload too large',
  });
});
