import { expect, test } from 'vitest';
import { judgeQueryLimit, judgeTransport } from '#lib/doctor/deployed';

// The doctor is the command that checks the configuration of a deployment (`npm run doctor`).

const HEADER = 'max-age=31536000';
const secure = { status: 308, location: 'https://app.example.com/' };

test.each<[string, string, Parameters<typeof judgeTransport>[1], string]>([
  ['http:// redirects to https://, with the header', HEADER, secure, 'ok'],
  ['http:// does not respond', HEADER, undefined, 'ok'],
  ['http:// responds with 200', HEADER, { status: 200, location: '' }, 'warning'],
  ['http:// redirects to http://', HEADER, { status: 302, location: 'http://www.example.com/' }, 'warning'],
  ['there is no header', '', secure, 'warning'],
  ['the header has max-age=0', 'max-age=0', secure, 'warning'],
])(
  'The doctor checks that a deployment redirects to https:// and sends Strict-Transport-Security: %s',
  (_case, strictTransport, plain, status) => {
    expect(judgeTransport(strictTransport, plain).status).toBe(status);
  },
);

test.each([
  ['the service, with a 400 in JSON', 400, { message: 'Bad request' }, 'ok', 'the service rejects'],
  ['a firewall, with a page', 403, undefined, 'ok', 'a layer in front of the service rejects'],
  ['a proxy, with a 400 that is not JSON', 400, undefined, 'ok', 'a layer in front of the service rejects'],
  ['no layer', 200, { status: 'ok' }, 'ok', 'reach Next.js'],
  ['no layer, and the service fails', 500, undefined, 'failure', 'responds with 500'],
])(
  'The doctor reports which layer rejects too many query parameters: %s',
  (_layer, status, body, expectedStatus, text) => {
    const result = judgeQueryLimit({ status, body });
    expect(result.status).toBe(expectedStatus);
    expect(result.message).toContain(text);
  },
);
