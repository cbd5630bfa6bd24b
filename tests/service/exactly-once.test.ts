import { expect, test } from 'vitest';
import { generateLoad } from '../harness/load-generator';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const USERS = 100;

const service = stopAfterAll(await startTestService({ processes: 2 }));

// `npm run exactly-once` runs the same load with 10,000 users.
test(`Each of ${USERS} new users gets one row and at most one 201 from concurrent calls of a guarded route, the register route and the webhook on two processes`, async () => {
  const figures = await generateLoad(service, { users: USERS, concurrency: 32, seed: 1 });
  expect(figures).toMatchObject({ rows: USERS, violations: [], errors: [] });
  expect(figures.created, 'register created some users').toBeGreaterThan(0);
  expect(figures.lostRaces, 'calls that lost a race to create a user').toBeGreaterThan(0);
});
