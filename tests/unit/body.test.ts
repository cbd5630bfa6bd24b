import { expect, test, vi } from 'vitest';
import * as z from 'zod/mini';
import { limitBody, readJson } from '#lib/http/body';

const sent = (body: string | Uint8Array<ArrayBuffer>) =>
  new Request('http://localhost/', { method: 'POST', body });
const rules = { maxBytes: 8, notUtf8: 'No text' };

test.each(['', '12345678', '\ufeffé', 'a\0b'])(
  'limitBody().text() returns a body within the limit unchanged: %j',
  async (body) => {
    expect(await limitBody(sent(body), rules).text()).toBe(body);
  },
);

test('limitBody().text() rejects a body above the limit with a 413, and a body that is not valid UTF-8 with a 400', async () => {
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

const Shape = z.object({ id: z.string('id must be a string') }, 'must be an object');

test.each<[body: string | Uint8Array<ArrayBuffer>, expected: unknown]>([
  ['{"id":"a","more":1}', { id: 'a' }],
  ['{"id":7}', 'id must be a string'],
  ['[]', 'must be an object'],
  ['', 'The request body must be JSON in UTF-8'],
  ['{', 'The request body must be JSON in UTF-8'],
  [Uint8Array.of(0xff), 'The request body must be JSON in UTF-8'],
])(
  'readJson() returns the parsed body, or rejects an invalid body with a message: %s',
  async (body, expected) => {
    const reading = readJson(sent(body), Shape);
    if (typeof expected === 'string') {
      await expect(reading).rejects.toMatchObject({ status: 400, message: expected });
    } else expect(await reading).toEqual(expected);
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

test('limitBody().text() joins the chunks of a body, and stops reading above the limit', async () => {
  let chunks = 0;
  /** Returns a body of `last` chunks with three bytes each. */
  const chunked = (last: number) =>
    new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          chunks += 1;
          controller.enqueue(new TextEncoder().encode('abc'));
          if (chunks === last) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
  const read = (last: number) => limitBody(streamed(chunked(last)), rules).text();
  expect(await read(2)).toBe('abcabc');
  chunks = 0;
  await expect(read(100)).rejects.toMatchObject({ status: 413 });
  expect(chunks).toBe(3);
});

test('limitBody().text() cancels a body that is too long, and ignores an error of the cancellation', async () => {
  const cancel = vi.fn(() => Promise.reject(new Error('connect ECONNRESET 10.0.0.1')));
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) =>
    controller.enqueue(new TextEncoder().encode('123456789'));
  const reading = limitBody(streamed(new ReadableStream<Uint8Array>({ pull, cancel })), rules).text();
  await expect(reading).rejects.toMatchObject({ status: 413 });
  expect(cancel).toHaveBeenCalledTimes(1);
});

test('limitBody().text() returns an empty string for a request without a body', async () => {
  expect(await limitBody(new Request('http://localhost/', { method: 'POST' }), rules).text()).toBe('');
});

test('readJson() accepts a body of 16 KiB and rejects a longer body', async () => {
  const id = 'x'.repeat(16 * 1024 - '{"id":""}'.length);
  expect(await readJson(sent(JSON.stringify({ id })), Shape)).toEqual({ id });
  await expect(readJson(sent(JSON.stringify({ id: `${id}x` })), Shape)).rejects.toMatchObject({
    status: 413,
  });
});
