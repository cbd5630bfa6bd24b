import { expect, test } from 'vitest';
import { send } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

// tests/service/openapi.test.ts checks the methods and the headers of the responses.

const service = sharedService();
const get = (path: string, requestId: string) =>
  send(`${service.url}${path}`, { headers: { 'x-request-id': requestId } });

test.each(['/health/alive', '/health/ready'])(
  'A request to %s needs no credential and is not logged, and there is no path below it',
  async (path) => {
    // On a busy machine, a dependency may be too slow for a readiness check.
    await expect.poll(() => get(path, 'probe')).toMatchObject({ status: 200, body: { status: 'ok' } });
    const below = `below${path.replaceAll('/', '-')}`;
    expect(await get(`${path}/x`, below)).toMatchObject({ status: 404 });
    await expect.poll(() => service.linesWith(below)).toHaveLength(1);
    expect(service.linesWith('"probe"')).toEqual([]);
  },
);
