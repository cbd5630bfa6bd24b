import { expect, test } from 'vitest';
import { extractCredential } from '#lib/idp/extract-credential';

const TOKEN = 'eyJh.eyJz.c2ln';
const OURS = 'https://app.example';
const of = (headers: Record<string, string>, method = 'GET') =>
  extractCredential({ method, headers: new Headers({ host: 'api.example', ...headers }) }, [OURS]);
const cookie = { cookie: `__session=${TOKEN}` };

test.each([['Bearer ak_secret'], ['Bearer'], [`Bearer ${TOKEN} x`], ['mt_token']])(
  'A malformed authorization header is rejected even if there is a session cookie: %s',
  (authorization) => {
    expect(of({ authorization, ...cookie })).toEqual({ credential: undefined, rejectionReason: 'malformed' });
  },
);

test.each([
  ['GET', { 'sec-fetch-site': 'same-origin' }, true],
  ['POST', { 'sec-fetch-site': 'same-origin' }, true],
  ['GET', { 'sec-fetch-site': 'same-site' }, true],
  ['POST', { 'sec-fetch-site': 'same-site' }, false],
  ['POST', { 'sec-fetch-site': 'same-site', origin: 'https://other.example' }, false],
  ['POST', { 'sec-fetch-site': 'same-site', origin: OURS }, true],
  ['GET', { 'sec-fetch-site': 'cross-site' }, false],
  ['GET', { 'sec-fetch-site': 'cross-site', origin: OURS }, false],
  ['POST', { origin: 'https://api.example' }, true],
  ['POST', { origin: 'https://other.example' }, false],
  ['POST', { origin: 'null' }, false],
])('A session cookie is accepted or rejected by method and origin: %s %j', (method, headers, counts) => {
  expect(of({ ...cookie, ...headers }, method).rejectionReason).toBe(counts ? undefined : 'foreign-cookie');
});
