import { expect, test } from 'vitest';
import { lockRow } from '../harness/dependencies/row-lock';
import { type Call, call, checkHistory, readRows } from '../harness/history';
import { deliver, me, register, tokenFor, userCreated } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

const service = sharedService();
const caller = tokenFor(service.idp, 'user_caller');

/**
 * Sends the requests while a lock blocks the inserts of the user. Releases the lock once an insert of each process waits, so that
 * the inserts race. The concurrent calls in one process share an insert. Returns the calls, and whether the inserts raced.
 */
async function race(id: string, requests: readonly (() => Promise<Call>)[]) {
  const row = await lockRow(service.database, id);
  const calls = Promise.all(requests.map((send) => send()));
  const hasRaced = await row.waiting(service.processes.length, 2_000);
  await row.release();
  return { calls: await calls, hasRaced };
}

test('Concurrent requests for a new user in two processes get one internal id and at most one 201, and there is one row', async () => {
  for (const { url } of service.processes) await me(url, caller);
  let hasRaced = false;
  // On a busy machine, the requests of one process may be late.
  for (let round = 0; round < 5 && !hasRaced; round += 1) {
    const id = `user_raced_${round}`;
    const raced = await race(
      id,
      service.processes.flatMap(({ url }) => [
        ...Array.from({ length: 5 }, () => () => call(id, 'guard', () => me(url, tokenFor(service.idp, id)))),
        ...Array.from(
          { length: 5 },
          () => () => call(id, 'register', () => register(url, caller, { identityProviderUserId: id })),
        ),
        ...Array.from({ length: 5 }, () => () => call(id, 'webhook', () => deliver(url, userCreated(id)))),
      ]),
    );
    hasRaced = raced.hasRaced;
    expect(checkHistory(raced.calls, await readRows(service))).toEqual([]);
    // A request may exceed a timeout of the service. Its client then sends it again.
    expect(raced.calls.filter(({ status = 0 }) => ![200, 201, 500].includes(status))).toEqual([]);
    expect(raced.calls.filter(({ userId }) => userId !== undefined)).not.toEqual([]);
  }
  expect(hasRaced).toBe(true);
});
