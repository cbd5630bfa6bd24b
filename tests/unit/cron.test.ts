import { NextRequest } from 'next/server';
import { expect, test, vi } from 'vitest';
import { log } from '#lib/base/log';
import { cronRoute } from '#lib/http/cron';

const SECRET = 'secret-of-the-cron-job';
const work = vi.fn(async () => ({ handled: 1 }));
const call = async (secret: string, authorization: string) => {
  vi.stubEnv('CRON_SECRET', secret);
  const request = new NextRequest('http://localhost/cron/v1/job', { headers: { authorization } });
  const response = await cronRoute(work)(request, { params: Promise.resolve({}) });
  vi.unstubAllEnvs();
  return { status: response.status, body: await response.json() };
};

test.each([
  [SECRET, ''],
  [SECRET, 'Bearer '],
  [SECRET, SECRET],
  [SECRET, `Bearer ${SECRET}x`],
  ['', 'Bearer '],
  ['', 'Bearer undefined'],
  ['fifteen-letters', 'Bearer fifteen-letters'],
])(
  'With the CRON_SECRET "%s", a call with the authorization "%s" gets a 401 with the reason cron-secret in the log, and does no work',
  async (secret, given) => {
    const info = vi.spyOn(log, 'info').mockReturnValue();
    expect(await call(secret, given)).toEqual({ status: 401, body: { message: 'Unauthorized' } });
    expect(info).toHaveBeenCalledWith(expect.objectContaining({ reason: 'cron-secret' }), 'request');
    info.mockRestore();
    expect(work).not.toHaveBeenCalled();
  },
);

test('A call with the secret gets the result of the work', async () => {
  expect(await call(SECRET, `Bearer ${SECRET}`)).toEqual({ status: 200, body: { handled: 1 } });
});
