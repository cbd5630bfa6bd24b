import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import {
  connect,
  countLinks,
  deleteLinks,
  deliver,
  REGISTER,
  send,
  sign,
  userCreated,
} from './application.mjs';

/**
 * `node --test scripts/identity-link/tests.mjs` tests the running application. The environment variable APPLICATION_URL is the
 * address of the application (default http://localhost:3000). The tests link users in its database and delete these users.
 */
const PREFIX = `identity-link-test-${randomUUID()}-`;
const newUser = () => `${PREFIX}${randomUUID()}`;

let database;
before(async () => {
  database = await connect();
});
after(async () => {
  await deleteLinks(database, PREFIX);
  await database.end();
});

/** Resolves when at least two statements of the application wait for the transaction of this connection. */
async function untilBlocked() {
  const blocked =
    'SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))';
  for (let attempt = 0; attempt < 1_000; attempt += 1) {
    if ((await database.query(blocked)).rows.length > 1) return;
    await setTimeout(5);
  }
  throw new Error('The statements did not overlap.');
}

test('Forty concurrent webhooks of a new user create one link', async () => {
  const user = newUser();
  // The inserts of the webhooks overlap, because all of them wait for the end of this transaction.
  await database.query('BEGIN');
  await database.query('INSERT INTO identity_links VALUES (gen_random_uuid(), $1)', [user]);
  const delivered = Promise.all(Array.from({ length: 40 }, () => deliver(userCreated(user))));
  await untilBlocked().finally(() => database.query('ROLLBACK'));
  const statuses = (await delivered).map(({ status }) => status);
  assert.deepEqual(new Set(statuses), new Set([200]));
  assert.equal(await countLinks(database, user), 1);
});

test('A guarded route responds with 401 in JSON without a session', async () => {
  for (const headers of [{}, { authorization: 'Bearer invalid' }]) {
    const response = await send(REGISTER, { method: 'POST', headers, body: '{}' });
    assert.equal(response.status, 401);
    assert.deepEqual(await response.json(), { message: 'Unauthorized' });
  }
});

test('A webhook with the signature of another body gets a 400 and links no user', async () => {
  const user = newUser();
  const response = await deliver(userCreated(user), sign(userCreated(newUser())));
  assert.equal(response.status, 400);
  assert.deepEqual(await response.json(), { message: 'Invalid webhook signature' });
  assert.equal(await countLinks(database, user), 0);
});

test('The signature of a webhook covers the exact bytes of the body', async () => {
  const body = userCreated(newUser());
  assert.equal((await deliver(`${body}\n`, sign(`${body}\n`))).status, 200);
  assert.equal((await deliver(`${body}\n`, sign(body))).status, 400);
});
