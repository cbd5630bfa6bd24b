import { expect, test, vi } from 'vitest';
import { importAsProcess, startInProcess } from '../harness/in-process';

const { database, kv } = await startInProcess();
const { pool } = database;

const { TransientError, deleteLink, exportUser, findLinks, linkMany } = await importAsProcess(async () => ({
  ...(await import('#lib/users/export')),
  ...(await import('#lib/users/rows')),
  ...(await import('#lib/linking/links')),
  ...(await import('#lib/concurrency/retry')),
}));

test('exportUser() returns all stored data about a linked user, and the result of the callback as `ownTables`', async () => {
  await linkMany(['user_1']);
  const [row] = await database.rowsOf('user_1');
  const userId = row?.id ?? '';
  await pool.query(`INSERT INTO previous_ids VALUES ('old_1', $1, 'user_1', 'run', '2030-01-01')`, [userId]);
  await pool.query(`INSERT INTO pending_deletions VALUES ('user_1', '2030-02-02'), ('user_2', '2031-01-01')`);
  await pool.query(
    `INSERT INTO webhook_subjects SELECT id, 86400000 * position, '2029-01-01'
     FROM unnest($1::text[]) WITH ORDINALITY AS subject (id, position)`,
    [['user_1', 'old_1', userId, 'user_2']],
  );
  await kv.engine.call('SET', 'auth:user-id-by-idp:user_1', userId);
  const [link] = await findLinks('user_1');
  const exportOwn = vi.fn(async () => ({ notes: [7] }));
  const previousIds = [{ identityProviderUserId: 'old_1', expiresAt: new Date('2030-01-01') }];
  const user = { userId, identityProviderUserId: 'user_1', previousIds };
  expect(link).toEqual(user);
  const receivedAt = new Date('2029-01-01');
  const exported = await exportUser(user, exportOwn);
  expect(exported).toEqual({
    link: { userId, identityProviderUserId: 'user_1' },
    previousIds,
    cachedUserId: userId,
    forgottenUntil: null,
    deletionDueAt: new Date('2030-02-02'),
    webhookSubjects: expect.any(Array),
    ownTables: { notes: [7] },
  });
  const { webhookSubjects } = Object(exported);
  expect(webhookSubjects).toHaveLength(3);
  expect(webhookSubjects).toEqual(
    expect.arrayContaining([
      { id: 'user_1', appliedTime: new Date('1970-01-02'), receivedAt },
      { id: 'old_1', appliedTime: new Date('1970-01-03'), receivedAt },
      { id: userId, appliedTime: new Date('1970-01-04'), receivedAt },
    ]),
  );
  expect(exportOwn).toHaveBeenCalledExactlyOnceWith(user);
});

test('For a forgotten user without a link, exportUser() returns null values, empty lists and the time until which the user is forgotten', async () => {
  await deleteLink('user_forgotten', 30);
  const { rows } = await pool.query(
    `UPDATE forgotten_users SET expires_at = date_trunc('second', expires_at) RETURNING expires_at`,
  );
  const user = { userId: undefined, identityProviderUserId: 'user_forgotten', previousIds: [] };
  expect(await exportUser(user, async () => ({}))).toEqual({
    link: { userId: null, identityProviderUserId: 'user_forgotten' },
    previousIds: [],
    cachedUserId: null,
    forgottenUntil: rows[0].expires_at,
    deletionDueAt: null,
    webhookSubjects: [],
    ownTables: {},
  });
});

test('exportUser() rejects with a TransientError if the cache does not respond, so that no export lacks the cached id', async () => {
  const user = { userId: undefined, identityProviderUserId: 'user_uncached', previousIds: [] };
  await kv.proxy.treat('refuse');
  const error = await exportUser(user, async () => ({})).catch((thrown: unknown) => thrown);
  await kv.proxy.treat('forward');
  expect(error).toBeInstanceOf(TransientError);
  expect(error).toMatchObject({ message: 'The cache does not respond' });
});
