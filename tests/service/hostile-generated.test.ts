import { expect, test } from 'vitest';
import { attack } from '../harness/hostile/attack';
import { hostileRequests } from '../harness/hostile/hostile-request';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

// As in production: without the way to the stand-in.
const service = stopAfterAll(await startTestService({ environment: { CLERK_FAPI_URL: '' } }));

test('of generated hostile requests none is answered 5xx, prints what it holds, stays open or registers anybody', async () => {
  expect(await attack(service, hostileRequests(1_000, 20_261_121))).toEqual([]);
}, 240_000);
