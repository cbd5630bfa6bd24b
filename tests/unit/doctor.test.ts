import { expect, test } from 'vitest';
import { judgeTransport } from '#lib/doctor/deployed';

const HEADER = 'max-age=31536000';
const secure = { status: 308, location: 'https://app.example.com/' };

test.each<[string, string, Parameters<typeof judgeTransport>[1], string]>([
  ['http:// leads to https://, and browsers stay there', HEADER, secure, 'ok'],
  ['http:// is not answered', HEADER, undefined, 'ok'],
  ['http:// is answered', HEADER, { status: 200, location: '' }, 'warning'],
  ['http:// leads to http://', HEADER, { status: 302, location: 'http://www.example.com/' }, 'warning'],
  ['browsers are told nothing', '', secure, 'warning'],
  ['browsers are told to forget it', 'max-age=0', secure, 'warning'],
])('transport of a deployed service: %s', (_what, strictTransport, plain, status) => {
  expect(judgeTransport(strictTransport, plain).status).toBe(status);
});
