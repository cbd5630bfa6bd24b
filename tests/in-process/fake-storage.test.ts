import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fakeStorage } from '../harness/fake-storage';
import { importAsProcess, startInProcess } from '../harness/in-process';

// tests/unit/interleavings.test.ts runs lib/ with fakes of the functions that query PostgreSQL and of the cache client. This
// file checks that the fakes return the same values as the real functions and the real client after any sequence of calls.

const { database, kv } = await startInProcess();
const real = await importAsProcess(async () => ({
  ...(await import('#lib/linking/links')),
  ...(await import('#lib/linking/forgotten')),
  ...(await import('#lib/users/rows')),
  ...(await import('#lib/users/relink')),
  ...(await import('#lib/errors/sql-state')),
  ...(await import('#lib/storage/kv')),
}));
const fake = fakeStorage(async (_name, statement) => statement());

type Functions = Pick<typeof real, 'linkedUserIds' | 'forgottenUntil' | 'findLinks'> & {
  readonly insertLinks: (ids: readonly string[]) => Promise<readonly string[]>;
  readonly deleteLink: (id: string, days: number) => Promise<readonly string[] | 'referenced'>;
  readonly move: (from: string, to: string) => Promise<void>;
  readonly get: (key: string) => Promise<string | null>;
  readonly set: (key: string, value: string) => Promise<unknown>;
  readonly del: (key: string) => Promise<unknown>;
};
const FAKE: Functions = {
  ...{ ...fake.links, ...fake.forgotten, ...fake.rows, ...fake.kv },
  move: async (from, to) => fake.move(from, to),
};
const REAL: Functions = {
  ...real,
  async move(oldId, newId) {
    const options = { run: 'run of a test', days: 30, retryOptions: { seconds: 20 } };
    for await (const { toMove } of real.relink([{ line: 1, oldId, newId }], options)) expect(toMove).toBe(1);
  },
  get: (key) => real.withKv((client) => client.get(key)),
  set: (key, value) => real.withKv((client) => client.set(key, value)),
  del: (key) => real.withKv((client) => client.del(key)),
};

const IDS = ['user_a', 'user_b', 'user_c'];
const STATEMENTS = ['find', 'insert', 'find forgotten', 'find links', 'delete', 'move'] as const;
const OPERATIONS = [...STATEMENTS, 'get', 'set', 'del'] as const;
type Operation = readonly [name: (typeof OPERATIONS)[number], id: string, to: string];

/**
 * Calls the functions in the order of `operations` and returns their results. The fakes and the database generate different
 * internal ids, so the results contain the position at which an id was inserted (0 for the first) instead of the id.
 */
async function resultsOf(functions: Functions, operations: readonly Operation[]) {
  const ids: string[] = [];
  const results: unknown[] = [];
  for (const [name, id, to] of operations) {
    if (name === 'find') results.push(ids.indexOf((await functions.linkedUserIds([id])).get(id) ?? ''));
    else if (name === 'insert') {
      const inserted = await functions.insertLinks([id]).catch(real.sqlStateOf);
      if (Array.isArray(inserted)) ids.push(...inserted);
      results.push(Array.isArray(inserted) ? inserted.length : inserted);
    } else if (name === 'find forgotten') results.push((await functions.forgottenUntil([id])).size);
    else if (name === 'find links') {
      const links = await functions.findLinks(id);
      results.push(links.map((link) => [ids.indexOf(link.userId), real.allIdsOf(link).sort()]));
    } else if (name === 'delete') results.push([...(await functions.deleteLink(id, 30))].sort());
    else if (name === 'move') await functions.move(id, to);
    else if (name === 'get') results.push(await functions.get(id));
    else if (name === 'set') await functions.set(id, to);
    else await functions.del(id);
  }
  return results;
}

test('The fakes of the database functions and of the cache client return the same results as the real ones', async () => {
  const operation = fc.tuple(
    fc.constantFrom(...OPERATIONS),
    fc.constantFrom(...IDS),
    fc.constantFrom(...IDS),
  );
  const operations = fc.array(operation, { minLength: 4, maxLength: 14 });
  await fc.assert(
    fc.asyncProperty(operations, async (generated) => {
      fake.reset();
      // A move gives a user another id of the provider. The command `npm run users:relink` rejects some moves. Applies the
      // operations to the fakes once to find these moves, and leaves them out.
      const allowed: Operation[] = [];
      for (const each of generated) {
        const [name, id, to] = each;
        if (name === 'move' && !(id !== to && fake.canMove(id, to))) continue;
        allowed.push(each);
        await resultsOf(FAKE, [each]);
      }
      fake.reset();
      await database.pool.query('DELETE FROM users; DELETE FROM forgotten_users');
      for (const id of IDS) await kv.engine.call('DEL', id);
      expect(await resultsOf(FAKE, allowed)).toEqual(await resultsOf(REAL, allowed));
    }),
    { numRuns: 40 },
  );
});
