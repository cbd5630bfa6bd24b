import { afterAll, beforeAll, expect, test } from 'vitest';
import { attack } from '../harness/hostile/attack';
import { hostileRequests } from '../harness/hostile/hostile-request';
import { startTestService, type TestService } from '../harness/service';

let service: TestService;
beforeAll(async () => {
  // As in production: without the way to the stand-in.
  service = await startTestService({ environment: { CLERK_FAPI_URL: '' } });
});
afterAll(() => service?.stop());

test('of generated hostile requests none is answered 5xx, prints what it holds, stays open or registers anybody', async () => {
  expect(await attack(service, hostileRequests(1_000, 20_261_121))).toEqual([]);
}, 240_000);
