import { NextRequest } from 'next/server';
import { expect, test } from 'vitest';
import { rejectionForServerAction, setServerActions } from '#lib/http/server-action';

/** Ids of server actions. `setServerActions` below declares that the build contains only the action KNOWN. */
const KNOWN = '7f'.repeat(21);
const UNKNOWN = '00'.repeat(21);

const rejectionOf = (body: string | FormData, id?: string) =>
  rejectionForServerAction(
    new NextRequest('http://localhost:3000/projects', {
      method: 'POST',
      headers: id === undefined ? {} : { 'next-action': id },
      body,
    }),
  );
const statusOf = async (body: string | FormData, id?: string) => (await rejectionOf(body, id))?.status;

const withoutList = await statusOf('[]', UNKNOWN);
setServerActions({ node: { [KNOWN]: {} }, edge: {} });

test('Without a list of the actions in the build, the call of any action passes', () => {
  expect(withoutList).toBeUndefined();
});

const form = (fields: Readonly<Record<string, string>>) => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
};
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

test.each([
  '[]',
  '[{"name":"a"}]',
  '["$undefined","$D2026-01-01T00:00:00.000Z","$n12","$$5"]',
  '[{"a":{"b":1},"c":"$0:0:a"}]',
  `["${'['.repeat(100)}"]`,
  nested(64),
  JSON.stringify([Array.from({ length: 9_999 }, () => 'a,[{')]),
  JSON.stringify(Array.from({ length: 1_000 }, () => 0)),
  JSON.stringify(Array.from({ length: 100 }, () => ({}))),
  `[${'{"a":'.repeat(63)}1${'}'.repeat(63)}]`,
  JSON.stringify(Array.from({ length: 100 }, () => ['a\\"[[', '{'])),
])('The call of a known action with decodable arguments passes: %#', async (body) => {
  expect(await statusOf(body, KNOWN)).toBeUndefined();
});

test.each([
  '',
  '[',
  '{}',
  '"x"',
  '["$F1"]',
  '["$Q1"]',
  '["$nx"]',
  `["$n${'9'.repeat(301)}"]`,
  `[${'0,'.repeat(1_000)}0]`,
  nested(65),
  `[${'{"a":'.repeat(64)}1${'}'.repeat(64)}]`,
  nested(100_000),
  JSON.stringify([Array.from({ length: 10_000 }, () => 0)]),
  JSON.stringify([Array.from({ length: 5_000 }, () => ({}))]),
])(
  'The call of a known action gets a 400 if the arguments exceed a limit or Next.js cannot decode them: %#',
  async (body) => {
    expect(await statusOf(body, KNOWN)).toBe(400);
  },
);

test('The call of an action that the build does not contain gets a 404 with the header x-nextjs-action-not-found', async () => {
  expect(await rejectionOf('[]', UNKNOWN)).toEqual({
    ...{ status: 404, message: 'Not found' },
    headers: { 'x-nextjs-action-not-found': '1' },
  });
});

test('The call of a known action passes if its form has 1,000 fields, and gets a 400 if it has more', async () => {
  const fields = (count: number) =>
    Object.fromEntries(Array.from({ length: count - 1 }, (_, index) => [`1_${index}`, '']));
  expect(await statusOf(form({ '0': '["$K1"]', ...fields(1_000) }), KNOWN)).toBeUndefined();
  expect(await statusOf(form({ '0': '["$K1"]', ...fields(1_001) }), KNOWN)).toBe(400);
});

test('The call of a known action passes if the argument is a form', async () => {
  expect(await statusOf(form({ '0': '["$K1"]', '1_name': nested(100) }), KNOWN)).toBeUndefined();
});

// Without JavaScript, a form names the action in the field `$ACTION_ID_<id>`, or in the fields `$ACTION_REF_<n>` and
// `$ACTION_<n>:0`. In the second case, further fields such as `$ACTION_<n>:1` can contain bound arguments.
test.each([
  [{ [`$ACTION_ID_${KNOWN}`]: '', name: 'a' }, undefined],
  [{ [`$ACTION_ID_${UNKNOWN}`]: '' }, 404],
  [{ [`$ACTION_ID_${KNOWN}`]: '', [`$ACTION_ID_${UNKNOWN}`]: '' }, 404],
  [{ $ACTION_ID_x: '' }, 404],
  [{ name: 'a' }, 400],
  [
    { $ACTION_REF_1: '', '$ACTION_1:0': `{"id":"${KNOWN}","bound":"$@1"}`, '$ACTION_1:1': '["a"]' },
    undefined,
  ],
  [{ $ACTION_REF_1: '', '$ACTION_1:0': `{"id":"${KNOWN}","bound":null}` }, undefined],
  [{ $ACTION_REF_123456789: '', '$ACTION_123456789:0': `{"id":"${KNOWN}","bound":null}` }, undefined],
  [{ $ACTION_REF_1: '', '$ACTION_1:0': `{"id":"${KNOWN}","bound":null}`, '$ACTION_2:x': '' }, undefined],
  [
    {
      ...{ $ACTION_REF_1: '', '$ACTION_1:0': `{"id":"${KNOWN}","bound":null}` },
      ...{ $ACTION_REF_2: '', '$ACTION_2:0': `{"id":"${UNKNOWN}","bound":null}` },
    },
    404,
  ],
  [{ $ACTION_REF_1: '', '$ACTION_1:0': `{"id":"${KNOWN}","bound":"$@1"}` }, 400],
  [{ $ACTION_REF_1: '', '$ACTION_1:0': `{"id":"${KNOWN}","bound":"$@1"}`, '$ACTION_1:1': '{}' }, 400],
  [{ $ACTION_REF_1: '', '$ACTION_1:0': `{"id":"${UNKNOWN}","bound":"$@1"}`, '$ACTION_1:1': '[]' }, 404],
  [{ $ACTION_REF_1: '', '$ACTION_1:0': '{"bound":null}' }, 400],
  [{ $ACTION_REF_1: '' }, 400],
])(
  'A form that is sent without JavaScript, with the fields %j, gets the status %s (undefined: the request passes)',
  async (fields, status) => {
    expect(await statusOf(form(fields))).toBe(status);
  },
);

test.each([
  { '0': '[]', '': '[]' },
  { '0': '[]', '0x0': '[]' },
  { '0': '[]', '00': '[]' },
  { '0': '["$@1"]', '1': `]${nested(65)}` },
  { '1': JSON.stringify(Array.from({ length: 5_001 }, () => 0)), '2': `[${'0,'.repeat(5_000)}0]` },
  Object.fromEntries(Array.from({ length: 1_001 }, (_, index) => [`1_${index}`, ''])),
])(
  'The call of an action gets a 400 if a field name is an unusual form of a number, such as `00`, `0x0` or an empty name, which JavaScript converts to 0. The call also gets a 400 if the form has too many fields, values or levels: %#',
  async (fields) => {
    expect(await statusOf(form({ '0': '[]', ...fields }), KNOWN)).toBe(400);
  },
);

test.each(['x', 'x1', '1x', '-1', '1:0', '', '1234567890'])(
  'A form that refers to an action by the invalid number %j gets a 400',
  async (reference) => {
    const fields = {
      [`$ACTION_REF_${reference}`]: '',
      [`$ACTION_${reference}:0`]: `{"id":"${KNOWN}","bound":null}`,
    };
    expect(await statusOf(form(fields))).toBe(400);
  },
);

test.each([
  ['too long headers of a field', 400, `--x\r\n${'a: b\r\n'.repeat(1_000)}\r\n\r\n--x--\r\n`],
  ['a different boundary than in the content type', 400, '--y--\r\n'],
  [
    'an empty field that names a known action',
    undefined,
    `--x\r\nContent-Disposition: form-data; name="$ACTION_ID_${KNOWN}"\r\n\r\n\r\n--x--\r\n`,
  ],
])('A form with %s gets the status %s (undefined: the request passes)', async (_case, status, body) => {
  const request = new NextRequest('http://localhost:3000/', {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary="x"' },
    body,
  });
  expect((await rejectionForServerAction(request))?.status).toBe(status);
});

test('The call of a known action passes if all headers of a field together have at most 2,000 bytes, and gets a 400 otherwise', async () => {
  const statusWith = async (bytes: number) => {
    const head = `Content-Disposition: form-data; name="0"\r\na: ${'b'.repeat(bytes)}`;
    const request = new NextRequest('http://localhost:3000/', {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary=x', 'next-action': KNOWN },
      body: `--x\r\n${head}\r\n\r\n[]\r\n--x--\r\n`,
    });
    return (await rejectionForServerAction(request))?.status;
  };
  expect([await statusWith(1_900), await statusWith(2_000)]).toEqual([undefined, 400]);
});

test('A body that does not match its multipart content type gets a 400', async () => {
  const request = new NextRequest('http://localhost:3000/', {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
    body: '--x',
  });
  expect((await rejectionForServerAction(request))?.status).toBe(400);
});
