import { afterAll, afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { safeMessage } from '../../commands/command';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { SIGNING_SECRET } from '../harness/keys';
import { stubProviderUsers } from '../harness/provider-users';
import { signatureHeaders } from '../harness/requests';

// A user.deleted event of the identity provider stores a pending deletion. forgetDue() forgets the users whose deletion is due.
// For each of these users, forgetDue() deletes the row and the cached internal id, and stores a hash of the identity-provider
// id, so that no event links the user again.
const { database, kv } = await startInProcess();
const { pool, idsOf } = database;

const { deletionDueAt, forgetDeletedUser, forgetDue, forgottenUntil, receiveWebhook, register } =
  await importAsProcess(async () => ({
    ...(await import('#lib/users/forget-due')),
    ...(await import('#lib/users/pending-deletions')),
    ...(await import('#lib/linking/links')),
    ...(await import('#lib/register')),
    ...(await import('#lib/webhook')),
    ...(await import('../../events/forget-deleted-user')),
  }));

let messages = 0;
/** Delivers an event about a user to the webhook. `timestamp` is the time of the event in milliseconds since 1970. */
function deliver(type: string, id: unknown, { message = ++messages, timestamp = Date.now() } = {}) {
  const payload = JSON.stringify({ type, data: { id, object: 'user', deleted: true }, timestamp });
  const headers = signatureHeaders(payload, { secret: SIGNING_SECRET, id: `msg_${message}` });
  return receiveWebhook(payload, new Headers(headers), [SIGNING_SECRET], {
    'user.deleted': forgetDeletedUser,
  });
}

const provider = stubProviderUsers();
afterAll(() => provider.restore());
/** Creates a user at the identity provider. */
const restoreAtProvider = (id: string) => {
  provider.users = [{ id, createdAt: 1 }];
};

/**
 * Runs the deletions that are due. Returns the result for each user. A run deletes the cache entry of a user twice, with a
 * pause between, because a request in flight may have cached the id. `meanwhile` replaces this pause.
 */
async function run(meanwhile: () => Promise<unknown> = async () => undefined) {
  const results: Record<string, string> = {};
  for await (const step of forgetDue(30, { seconds: 0 }, meanwhile))
    results[step.identityProviderUserId] =
      step.result === 'failed' ? `failed: ${safeMessage(step.error)}` : step.result;
  return results;
}
const makeDue = () => pool.query(`UPDATE pending_deletions SET due_at = now() - interval '1 minute'`);
const pending = async () =>
  (await pool.query('SELECT identity_provider_user_id AS id FROM pending_deletions ORDER BY 1')).rows.map(
    ({ id }) => id,
  );
/** Links a user and makes its deletion due. Returns the internal id. */
async function linkAndDelete(id: string): Promise<string | undefined> {
  const registration = await register('user', id);
  await deliver('user.deleted', id);
  await makeDue();
  return registration?.id;
}

afterEach(async () => {
  await kv.proxy.treat('forward');
  await pool.query('TRUNCATE pending_deletions, users, forgotten_users, webhook_messages CASCADE');
  provider.users = [];
  provider.queries.length = 0;
});

test('A deletion is due 24 hours after the user.deleted event arrives, and the row of the user exists until then', async () => {
  await register('user', 'user_deleted');
  const before = Date.now();
  await deliver('user.deleted', 'user_deleted', { timestamp: 1 });
  const dueAt = (await deletionDueAt(['user_deleted']))?.getTime() ?? 0;
  expect(dueAt - 24 * 3_600_000).toBeGreaterThanOrEqual(before - 1_000);
  expect(dueAt - 24 * 3_600_000).toBeLessThanOrEqual(Date.now() + 1_000);
  expect(await run()).toEqual({});
  expect(await idsOf('user_deleted')).toHaveLength(1);
  expect(await deletionDueAt(['user_other'])).toBeNull();
});

test('A due deletion deletes the row and the cached id, stores that the user is forgotten, and is no longer pending', async () => {
  const userId = await linkAndDelete('user_due');
  await kv.cacheId('user_due', 'cached');
  const { rows } = await pool.query(`SELECT encode(forgotten_user_hash('user_due'), 'hex') AS hash`);
  for await (const step of forgetDue(30, { seconds: 0 }, async () => undefined))
    expect(step).toMatchObject({ result: 'forgotten', userId, idHash: rows[0].hash.slice(0, 16) });
  expect([await idsOf('user_due'), await pending()]).toEqual([[], []]);
  expect(await kv.cachedId('user_due')).toBeNull();
  expect([...(await forgottenUntil(['user_due'])).keys()]).toEqual(['user_due']);
});

test('If user.created arrives after user.deleted, the user is linked, and is forgotten when the deletion is due. A later event does not link the user again', async () => {
  await deliver('user.deleted', 'user_late');
  await deliver('user.created', 'user_late', { timestamp: Date.now() - 60_000 });
  expect(await idsOf('user_late')).toHaveLength(1);
  await makeDue();
  expect(await run()).toEqual({ user_late: 'forgotten' });
  await deliver('user.created', 'user_late');
  expect(await idsOf('user_late')).toEqual([]);
});

test('A user that exists at the provider again is not deleted, and the deletion is no longer pending', async () => {
  const userId = await linkAndDelete('user_restored');
  await linkAndDelete('user_gone');
  restoreAtProvider('user_restored');
  expect(await run()).toEqual({ user_gone: 'forgotten', user_restored: 'restored' });
  expect(await idsOf('user_restored')).toEqual([userId]);
  expect(await pending()).toEqual([]);
});

test('If `npm run users -- relink` has moved a user to another id, the pending deletion of the previous id does not delete the user', async () => {
  const userId = await linkAndDelete('user_moved');
  await pool.query(`UPDATE users SET identity_provider_user_id = 'user_new_id' WHERE id = $1`, [userId]);
  await pool.query(`INSERT INTO previous_ids VALUES ('user_moved', $1, 'user_new_id', 'run', now())`, [
    userId,
  ]);
  expect(await run()).toEqual({ user_moved: 'moved' });
  expect(await idsOf('user_new_id')).toEqual([userId]);
  expect(await pending()).toEqual([]);
});

test('Without a valid response of the provider, nothing is deleted', async () => {
  await linkAndDelete('user_unchecked');
  for (const response of [
    () => Promise.reject(new Error('no network')),
    async () => Response.json({ errors: [] }, { status: 500 }),
    async () => Response.json({ errors: [] }, { status: 401 }),
    async () => Response.json({}),
  ]) {
    provider.failures.push(response);
    await expect(run()).rejects.toThrow(/identity provider/);
    expect(await idsOf('user_unchecked')).toHaveLength(1);
    expect(await pending()).toEqual(['user_unchecked']);
  }
});

test('If another table refers to the row or the DELETE fails, a run leaves the deletion pending and forgets the other users', async () => {
  const userId = await linkAndDelete('user_1_referenced');
  await linkAndDelete('user_2_failing');
  await linkAndDelete('user_3');
  await pool.query(`
    CREATE TABLE invoices (user_id uuid REFERENCES users (id));
    CREATE FUNCTION fail_deletion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF OLD.identity_provider_user_id = 'user_2_failing' THEN RAISE EXCEPTION 'failed by a test'; END IF;
      RETURN OLD;
    END $$;
    CREATE TRIGGER fail_deletion BEFORE DELETE ON users FOR EACH ROW EXECUTE FUNCTION fail_deletion()`);
  onTestFinished(async () => {
    await pool.query('DROP TABLE invoices; DROP FUNCTION fail_deletion CASCADE');
  });
  await pool.query('INSERT INTO invoices VALUES ($1)', [userId]);
  expect(await run()).toEqual({
    user_1_referenced: 'referenced',
    user_2_failing: 'failed: The database rejected the statement (P0001)',
    user_3: 'forgotten',
  });
  expect(await pending()).toEqual(['user_1_referenced', 'user_2_failing']);
  await pool.query('DELETE FROM invoices; DROP TRIGGER fail_deletion ON users');
  expect(await run()).toEqual({ user_1_referenced: 'forgotten', user_2_failing: 'forgotten' });
  expect(await pending()).toEqual([]);
});

test('The deletion of a user stays pending if the cache fails before or after the row is deleted', async () => {
  await linkAndDelete('user_cached');
  await kv.proxy.treat('refuse');
  expect(await run()).toEqual({ user_cached: 'failed: The cache does not respond. Nothing was deleted.' });
  expect(await idsOf('user_cached')).toHaveLength(1);
  await kv.proxy.treat('forward');
  await vi.waitFor(async () => {
    // The circuit breaker of the cache may still be open after the run above. The next run then fails.
    expect(await run(() => kv.proxy.treat('refuse'))).toEqual({ user_cached: 'uncertain' });
  }, 30_000);
  expect([await idsOf('user_cached'), await pending()]).toEqual([[], ['user_cached']]);
});

test('If a request with a session token creates a new row for the user during a run, the deletion stays pending, and the next run queries the provider again', async () => {
  await linkAndDelete('user_back');
  const relinked = await run(() => register('user', 'user_back', Date.now() / 1000 + 60));
  expect([relinked, await pending()]).toEqual([{ user_back: 'relinked' }, ['user_back']]);
  restoreAtProvider('user_back');
  expect(await run()).toEqual({ user_back: 'restored' });
  expect(await idsOf('user_back')).toHaveLength(1);
});

test('A user.deleted event that arrives during the deletion of the user starts the 24 hours again', async () => {
  await linkAndDelete('user_again');
  expect(await run(() => deliver('user.deleted', 'user_again'))).toEqual({ user_again: 'forgotten' });
  expect(await pending()).toEqual(['user_again']);
  expect(await run()).toEqual({});
});

test('The next run completes the deletions of a run that failed after it had deleted the rows, with one provider request for each 20 users', async () => {
  const ids = Array.from({ length: 21 }, (_, index) => `user_${String(index).padStart(2, '0')}`);
  await pool.query(`INSERT INTO pending_deletions SELECT unnest($1::text[]), now() - interval '1 minute'`, [
    ids,
  ]);
  await run(() => Promise.reject(new Error('interrupted')));
  expect(await pending()).toEqual(ids);
  expect(Object.keys(await run())).toEqual(ids);
  expect(provider.queries.map((query) => query.match(/user_id=/g)?.length)).toEqual([20, 1, 20, 1]);
  expect(await pending()).toEqual([]);
});
