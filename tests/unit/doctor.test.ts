import { expect, test } from 'vitest';
import { judgeQueryLimit, judgeTransport } from '#lib/doctor/deployed';

// The doctor is the command that checks the configuration of a deployment (`npm run doctor`).

/** Value of the header Strict-Transport-Security. */
const HEADER = 'max-age=31536000';
const secure = { status: 308, location: 'https://app.example.com/' };

test.each<[string, string, Parameters<typeof judgeTransport>[1], string]>([
  ['ok if http:// redirects to https:// and the header is present', HEADER, secure, 'ok'],
  ['ok if http:// does not respond and the header is present', HEADER, undefined, 'ok'],
  ['a warning if http:// responds with 200', HEADER, { status: 200, location: '' }, 'warning'],
  [
    'a warning if http:// redirects to http://',
    HEADER,
    { status: 302, location: 'http://www.example.com/' },
    'warning',
  ],
  ['a warning if the header is missing', '', secure, 'warning'],
  ['a warning if the header has max-age=0', 'max-age=0', secure, 'warning'],
])(
  'When the doctor checks the redirect to https:// and the header Strict-Transport-Security, the result is %s',
  (_case, strictTransport, plain, status) => {
    expect(judgeTransport(strictTransport, plain).status).toBe(status);
  },
);

test.each([
  ['the service, which sends a 400 in JSON', 400, { message: 'Bad request' }, 'ok', 'the service rejects'],
  ['a firewall, which sends a page', 403, undefined, 'ok', 'a layer in front of the service rejects'],
  [
    'a proxy, which sends a 400 that is not JSON',
    400,
    undefined,
    'ok',
    'a layer in front of the service rejects',
  ],
  ['no layer', 200, { status: 'ok' }, 'ok', 'reach Next.js'],
  ['no layer, and the service fails', 500, undefined, 'failure', 'responds with 500'],
])(
  'The doctor reports which layer rejects a request with too many query parameters: %s',
  (_layer, status, body, expectedStatus, text) => {
    const result = judgeQueryLimit({ status, body });
    expect(result.status).toBe(expectedStatus);
    expect(result.message).toContain(text);
  },
);
