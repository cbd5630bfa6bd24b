import { expect, test } from 'vitest';
import { lockRow } from '../harness/dependencies/row-lock';
import { type Call, call, checkHistory, readRows } from '../harness/history';
import { deliver, me, register, tokenFor, userCreated } from '../harness/requests';
import { sharedService } from '../vitest/shared-service';

const service = sharedService();
const caller = tokenFor(service.idp, 'user_caller');

/**
 * Sends the requests while a lock blocks the inserts of the user. Releases the lock once an insert of each process waits, so that
 * the inserts race. The concurrent calls in one process share an insert. Returns the calls.
 */
async function race(id: string, requests: readonly (() => Promise<Call>)[]): Promise<Call[]> {
  const row = await lockRow(service.database, id);
  const calls = Promise.all(requests.map((send) => send()));
  await row.waiting(service.processes.length, 2_000);
  await row.release();
  return calls;
}

test('Of concurrent requests for a new user in two processes, at most one gets a 201. All requests that succeed get the same internal id, and there is one row', async () => {
  const id = 'user_raced';
  for (const { url } of service.processes) await me(url, caller);
  const calls = await race(
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
  expect(checkHistory(calls, await readRows(service))).toEqual([]);
  // On a busy machine, a request may exceed a timeout of the service. Its client then sends it again.
  expect(calls.filter(({ status = 0 }) => ![200, 201, 500].includes(status))).toEqual([]);
  expect(calls.filter(({ userId }) => userId !== undefined)).not.toEqual([]);
});
