import { expect, test } from 'vitest';
import * as z from 'zod/mini';
import { limitBody, readJson } from '#lib/http/body';

const sent = (body: string | Uint8Array<ArrayBuffer>) =>
  new Request('http://localhost/', { method: 'POST', body });
const rules = { maxBytes: 8, notUtf8: 'No text' };

test.each(['', '12345678', '\ufeffé', 'a\0b'])('text() returns the body unchanged: %j', async (body) => {
  expect(await limitBody(sent(body), rules).text()).toBe(body);
});

test('A body above the limit gets a 413, and a body that is not valid UTF-8 gets a 400', async () => {
  await expect(limitBody(sent('123456789'), rules).text()).rejects.toMatchObject({ status: 413 });
  await expect(limitBody(sent(Uint8Array.of(0xff)), rules).text()).rejects.toMatchObject({
    status: 400,
    message: 'No text',
  });
});

const Shape = z.object({ id: z.string('id must be a string') }, 'must be an object');

test.each([
  ['{"id":"a","more":1}', { id: 'a' }],
  ['{"id":7}', 'id must be a string'],
  ['[]', 'must be an object'],
  ['', 'The request body must be JSON in UTF-8'],
  ['{', 'The request body must be JSON in UTF-8'],
])('readJson() returns the parsed body or rejects with the problem: %s', async (body, expected) => {
  const reading = readJson(sent(body), Shape);
  if (typeof expected === 'string') {
    await expect(reading).rejects.toMatchObject({ status: 400, message: expected });
  } else expect(await reading).toEqual(expected);
});
