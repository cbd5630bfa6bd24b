import { expect, test } from 'vitest';
import { type AddressedRequest, rejectionForAddress } from '#lib/routing/paths';

const rejectionOf = (request: Partial<AddressedRequest>) =>
  rejectionForAddress({
    method: 'GET',
    pathname: '/users/v1/me',
    query: '',
    header: () => undefined,
    hasProxy: false,
    ...request,
  });

test.each<[Partial<AddressedRequest>, number | undefined]>([
  [{}, undefined],
  [{ query: 'a=b' }, undefined],
  [{ query: 'a&'.repeat(101) }, 400],
  [{ pathname: '/_next/data/users/v1/me' }, 404],
  [{ pathname: '/__clerk/v1/client' }, 404],
  [{ pathname: '/__clerk/v1/client', method: 'TRACE' }, 404],
  [{ pathname: '/__clerk/v1/client', method: 'POST', hasProxy: true }, undefined],
  [{ pathname: '/__clerk/v1/client', method: 'TRACE', hasProxy: true }, 405],
  [{ method: 'TRACE' }, 405],
])('rejectionForAddress() returns the status for %j: %s', (request, status) => {
  expect(rejectionOf(request)?.status).toBe(status);
});

test('A 405 lists the allowed methods', () => {
  expect(rejectionOf({ pathname: '/openapi.json', method: 'POST' })?.headers).toEqual({ allow: 'GET, HEAD' });
  expect(rejectionOf({ pathname: '/account', method: 'POST' })?.headers).toEqual({
    allow: 'GET, HEAD, OPTIONS',
  });
});
