import { expect, test } from 'vitest';
import { judgeQueryLimit, judgeTransport } from '#lib/doctor/deployed';

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

test.each([
  ['the service, with a 400 in JSON', 400, { message: 'Bad request' }, 'ok', 'the service rejects'],
  ['a firewall, with a page', 403, undefined, 'ok', 'a layer in front of the service rejects'],
  ['a proxy, with a 400 that is not JSON', 400, undefined, 'ok', 'a layer in front of the service rejects'],
  ['no layer', 200, { status: 'ok' }, 'ok', 'reach Next.js'],
  ['no layer, and the service fails', 500, undefined, 'failure', 'responds with 500'],
])(
  'The doctor names the layer that rejects too many query parameters: %s',
  (_layer, status, body, verdict, words) => {
    const finding = judgeQueryLimit({ status, body });
    expect(finding.status).toBe(verdict);
    expect(finding.finding).toContain(words);
  },
);
