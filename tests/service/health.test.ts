import { describe, expect, test } from 'vitest';
import { type ParsedResponse, send } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

const ALIVE = '/health/alive';
const READY = '/health/ready';
const ok = { status: 200, body: { status: 'ok' } };

const service = sharedService();
const get = (path: string, init: RequestInit = {}) => send(`${service.url}${path}`, init);
const statusAndBody = ({ status, body }: ParsedResponse) => ({ status, body });

describe.each([ALIVE, READY])('%s', (path) => {
  test(`${path} needs no credential, has the response headers of the API, allows only GET and HEAD, and has no subpath`, async () => {
    // On a busy machine, a dependency may be too slow for a readiness check.
    await expect.poll(async () => statusAndBody(await get(path))).toEqual(ok);
    const response = await get(path, { headers: { 'x-request-id': 'probe-1' } });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-request-id': 'probe-1',
      'x-content-type-options': 'nosniff',
    });
    expect((await get(path, { method: 'HEAD' })).body).toBe('');
    for (const method of ['POST', 'PUT', 'DELETE']) expect((await get(path, { method })).status).toBe(405);
    expect((await get(`${path}/x`)).status).toBe(404);
  });

  test(`The service does not log a request to ${path}`, async () => {
    await get(path, { headers: { 'x-request-id': 'probe-2' } });
    const later = `after${path.replaceAll('/', '-')}`;
    await get('/health/unknown', { headers: { 'x-request-id': later } });
    await expect.poll(() => service.linesWith(later)).toHaveLength(1);
    expect(service.linesWith('probe-2')).toEqual([]);
  });
});
