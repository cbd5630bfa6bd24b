import { expect, test } from 'vitest';
import { arrive } from '../harness/arrivals';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';

const USERS = 100;

const service = stopAfterAll(await startTestService({ processes: 2 }));

// `npm run exactly-once` does the same with 10,000 users.
test(`${USERS} users, each arriving by guard, register and webhook at once, in two processes: one row each, one 201 at most`, async () => {
  const figures = await arrive(service, { users: USERS, concurrency: 32, seed: 1 });
  expect(figures).toMatchObject({
    rows: USERS,
    usersWithoutOneRow: 0,
    usersWithSeveralIds: 0,
    usersCreatedTwice: 0,
    errors: [],
  });
  expect(figures.created, 'some were first linked by register').toBeGreaterThan(0);
  expect(figures.lostRaces, 'calls that raced to create a user').toBeGreaterThan(0);
});
