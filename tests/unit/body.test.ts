import { expect, test } from 'vitest';
import * as z from 'zod/mini';
import { bounded, readJson } from '#lib/http/body';

const sent = (body: string | Uint8Array<ArrayBuffer>) =>
  new Request('http://localhost/', { method: 'POST', body });
const rules = { maxBytes: 8, notUtf8: 'No text' };

test.each(['', '12345678', '\ufeffé', 'a\0b'])('text that is the bytes, one to one: %j', async (body) => {
  expect(await bounded(sent(body), rules).text()).toBe(body);
});

test('one byte too many is a 413, bytes that are no text a 400', async () => {
  await expect(bounded(sent('123456789'), rules).text()).rejects.toMatchObject({ status: 413 });
  await expect(bounded(sent(Uint8Array.of(0xff)), rules).text()).rejects.toMatchObject({
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
])('a JSON body, or what is wrong with it: %s', async (body, expected) => {
  const reading = readJson(sent(body), Shape);
  if (typeof expected === 'string') {
    await expect(reading).rejects.toMatchObject({ status: 400, message: expected });
  } else expect(await reading).toEqual(expected);
});
