import { expect, test, vi } from 'vitest';
import { importAsProcess, startInProcess } from '../harness/in-process';

const { database, kv } = await startInProcess();
const { pool } = database;
await database.alter(`SET timezone = 'Asia/Kolkata'`);

const { deleteLink, exportUser, findRows, linkMany } = await importAsProcess(async () => ({
  ...(await import('#lib/operator/export')),
  ...(await import('#lib/operator/delete-link')),
  ...(await import('#lib/operator/rows')),
  ...(await import('#lib/ids/store')),
  ...(await import('#lib/operator/backfill')),
}));

test('The export of a linked user has all stored data, the rows of the application, and the true times in a database whose time zone is not UTC', async () => {
  await linkMany(['user_1']);
  const [userId = ''] = await database.idsOf('user_1');
  await pool.query(`INSERT INTO previous_ids VALUES ('user', 'old_1', $1, 'user_1', 'run', '2030-01-01Z')`, [
    userId,
  ]);
  await pool.query(
    `INSERT INTO pending_deletions VALUES ('user', 'old_1', '2030-02-02Z'), ('user', 'user_2', '2029-01-01')`,
  );
  await pool.query(
    `INSERT INTO webhook_subjects SELECT id, 86400000, '2029-01-01Z' FROM unnest($1::text[]) AS subject (id)`,
    [['user_1', 'old_1', userId, 'user_2']],
  );
  await kv.cacheId('user_1', userId);
  const [link] = await findRows('user', 'user_1');
  const exportOwn = vi.fn(async () => ({ notes: [7] }));
  const previousIds = [{ identityProviderUserId: 'old_1', expiresAt: new Date('2030-01-01') }];
  const user = { userId, identityProviderUserId: 'user_1', previousIds };
  const exported = await exportUser('user_1', link, exportOwn);
  const times = { appliedTime: new Date('1970-01-02'), receivedAt: new Date('2029-01-01') };
  expect(exported).toEqual({
    link: { userId, identityProviderUserId: 'user_1' },
    previousIds,
    cachedUserId: userId,
    forgottenUntil: null,
    deletionDueAt: new Date('2030-02-02'),
    webhookSubjects: expect.toSatisfy((subjects) => subjects.length === 3),
    ownTables: { notes: [7] },
  });
  for (const id of ['user_1', 'old_1', userId])
    expect(Object(exported).webhookSubjects).toContainEqual({ id, ...times });
  expect(exportOwn).toHaveBeenCalledExactlyOnceWith(user);
});

test('The export of a forgotten user has only the time until which the user is forgotten, and fails if the cache does not respond', async () => {
  await deleteLink('user', 'user_forgotten', 30, { by: 'me' });
  const { rows } = await pool.query(
    `UPDATE forgotten_users SET expires_at = date_trunc('second', expires_at) RETURNING expires_at`,
  );
  const exporting = () => exportUser('user_forgotten', undefined, async () => ({}));
  expect(await exporting()).toEqual({
    link: { userId: null, identityProviderUserId: 'user_forgotten' },
    previousIds: [],
    cachedUserId: null,
    forgottenUntil: rows[0].expires_at,
    deletionDueAt: null,
    webhookSubjects: [],
    ownTables: {},
  });
  await kv.proxy.treat('refuse');
  await expect(exporting()).rejects.toThrow('The cache does not respond');
});
