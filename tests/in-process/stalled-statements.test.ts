import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { countOutcomes } from '../harness/outcomes';

// A transaction whose end PostgreSQL has not confirmed may still be open. A later statement on its connection would then be part of
// that transaction, and would be lost with it.
const { database } = await startInProcess();
const { pool, proxy } = database;
const service = await importAsProcess(async () => ({
  ...(await import('#lib/operator/delete-link')),
  ...(await import('#lib/operator/external-ids')),
  ...(await import('#lib/operator/forget')),
  ...(await import('#lib/operator/relink')),
  ...(await import('#lib/register')),
  ...(await import('#lib/storage/database')),
  ...(await import('../../events/forget-deleted-user')),
}));

/** Called when the client has sent a further statement. The proxy then holds it. */
let onStatement = () => {};
const readStatements = proxy.onClientData;
proxy.onClientData = (chunk) => {
  readStatements?.(chunk);
  if (/^[PQ]/.test(chunk.toString('latin1'))) onStatement();
};

afterEach(async () => {
  onStatement = () => {};
  vi.useRealTimers();
  await proxy.treat('forward');
  await service.closeDatabase();
  await pool.query(
    'TRUNCATE users, tenants, pending_deletions, forgotten_users, webhook_messages, link_changes CASCADE',
  );
});

const stored = async (statement: string) => (await pool.query(statement)).rowCount;
const change = { by: 'me' };
const retryOptions = { seconds: 0 };
const move = { ...change, kind: 'user', run: 'run', days: 1, retryOptions } as const;
const adoptAs = (kind: 'user' | 'tenant') => (id: string) =>
  countOutcomes(service.adopt(kind, [[{ id, externalId: randomUUID() }]], change, retryOptions));

/** Operations that add a row to the history in their transaction. */
const operations: Record<string, (id: string) => Promise<unknown>> = {
  'an event': (id) => service.forgetDeletedUser({ id }, { messageId: id, occurredAt: Date.now() }),
  'the command remember': (id) => service.remember('user', id, change),
  'the command adopt': adoptAs('user'),
  'the command adopt of tenants': adoptAs('tenant'),
  'the command relink': (id) =>
    countOutcomes(service.relink([{ line: 1, oldId: id, newId: `${id}_new` }], move)),
  'the deletion of the command forget': (id) => service.deleteLink('user', id, 1, change),
  'the deletion of the command due': (id) => service.deleteIfDue('user', id, 1, change),
};

test.each(Object.entries(operations))(
  'After the database stalls at any statement of %s, no transaction stays open, and the ids of later registrations are stored',
  async (name, operate) => {
    // No time limit fires on a busy machine.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    for (let statement = 1, isStalled = true; isStalled; statement += 1) {
      const id = `user_${statement}`;
      if (!name.includes('adopt')) await database.link(id);
      if (/remember|due/.test(name))
        await pool.query("INSERT INTO pending_deletions VALUES ('user', $1, now())", [id]);
      isStalled = false;
      let sent = 0;
      onStatement = () => {
        sent += 1;
        if (sent !== statement) return;
        isStalled = true;
        void proxy.treat('stall');
      };
      let isDone = false;
      const operation = operate(id)
        .then(
          () => 'completed',
          () => 'failed',
        )
        .finally(() => {
          isDone = true;
        });
      while (!isDone) {
        if (isStalled) await vi.advanceTimersByTimeAsync(1_000);
        await setImmediate();
      }
      onStatement = () => {};
      expect(await operation).toBe(isStalled ? 'failed' : 'completed');
      await proxy.treat('forward');
      const open = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`;
      await expect.poll(() => stored(open)).toBe(0);
      const ids = Array.from({ length: 12 }, (_, index) => `${id}_later_${index}`);
      const registered = await Promise.all(ids.map((each) => service.register('user', each)));
      for (const [index, each] of ids.entries())
        expect(await database.idsOf(each)).toEqual([registered[index]?.id]);
      await operate(id);
      expect(await stored('SELECT DISTINCT id_hash FROM link_changes')).toBe(statement);
    }
  },
);
