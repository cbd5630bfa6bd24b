import { NextRequest } from 'next/server';
import { expect, test } from 'vitest';
import { rejectedActionStatus } from '#lib/next/server-action';

const ID = '7f'.repeat(20);
const HOST = 'app.example:8443';
const post = (headers: Record<string, string>, body: BodyInit = '[]') =>
  rejectedActionStatus(
    new NextRequest('http://localhost/', { method: 'POST', body, headers: { host: HOST, ...headers } }),
  );

test.each([
  ['7f'.repeat(32), undefined],
  [`${ID}7`, undefined],
  [ID.slice(1), 404],
  [`x${ID}`, 404],
  [`${ID}x`, 404],
])('A POST to a page with the action id %s is rejected with the status: %s', async (id, status) => {
  expect(await post({ 'next-action': id })).toBe(status);
});

test.each([
  [{}, undefined],
  [{ origin: `https://${HOST}` }, undefined],
  [{ origin: 'https://app.example', host: 'app.example:443' }, undefined],
  [{ origin: 'https://proxy.example', 'x-forwarded-host': ' proxy.example:443 , other.example' }, undefined],
  [{ origin: 'https://other.example', 'x-forwarded-host': 'proxy.example, other.example' }, 400],
  [{ origin: 'https://evil.example' }, 400],
  [{ origin: 'null' }, 400],
  [{ origin: 'file:///' }, 400],
  [{ origin: 'file:///', 'x-forwarded-host': '' }, 400],
])('A POST to a page with the headers %j is rejected with the status: %s', async (headers, status) => {
  expect(await post(headers)).toBe(status);
});

test.each([
  ['1_$ACTION_0:0', '{', undefined],
  ['$ACTION_0:0', '[', 400],
  ['$ACTION_10:10', '[', 400],
  ['0', '[', 400],
  ['10', '[', 400],
  ['10', '[]', undefined],
  ['0x', '[', undefined],
  ['note', 'text', undefined],
])('A form with the field %s=%s is rejected with the status: %s', async (name, value, status) => {
  const form = new FormData();
  form.set(name, value);
  expect(await post({}, form)).toBe(status);
});

test('A body that is not JSON is a 400, and a GET is not checked', async () => {
  expect(await post({}, '[')).toBe(400);
  expect(
    await rejectedActionStatus(new NextRequest('http://localhost/', { headers: { origin: 'null' } })),
  ).toBe(undefined);
});
