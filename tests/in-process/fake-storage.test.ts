import fc from 'fast-check';
import { expect, test } from 'vitest';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { fakeStorage } from '../model/fake-storage';

const { database } = await startInProcess();
const real = await importAsProcess(async () => ({
  ...(await import('#lib/ids/store')),
  ...(await import('#lib/operator/rows')),
  ...(await import('#lib/operator/delete-link')),
  ...(await import('#lib/operator/pending-deletions')),
  ...(await import('#lib/operator/relink')),
  ...(await import('#lib/base/sql-state')),
}));
const fake = fakeStorage(async (_name, statement) => statement());

type Names = 'findLink' | 'insertLink' | 'isForgotten' | 'findRows' | 'deleteLink';
type Storage = Pick<typeof real, Names> & { readonly move: (from: string, to: string) => Promise<void> };
const FAKE: Storage = {
  ...fake.links,
  ...fake.rows,
  ...fake.deletion,
  move: async (from, to) => fake.move(from, to),
};
const REAL: Storage = {
  ...real,
  async deleteLink(...args) {
    const ids = await real.deleteLink(...args);
    await real.finishDeletions('user', ids);
    return ids;
  },
  async move(oldId, newId) {
    const options = {
      kind: 'user',
      run: 'run of a test',
      by: 'me',
      days: 30,
      retryOptions: { seconds: 20 },
    } as const;
    for await (const page of real.relink([{ line: 1, oldId, newId }], options))
      expect(page).toMatchObject([{ outcome: 'moved' }]);
  },
};

type Operation = readonly [name: 'find' | 'insert' | 'delete' | 'move', id: string, to: string];
const IDS = ['user_a', 'user_b', 'user_c'];

/**
 * Runs the operations and returns their results. The fakes and the database generate different internal ids, so the results
 * contain the position at which an id was inserted (0 for the first) instead of the id.
 */
async function resultsOf(storage: Storage, operations: readonly Operation[]) {
  const ids: string[] = [];
  const results: unknown[] = [];
  for (const [name, id, to] of operations) {
    if (name === 'find') {
      results.push(ids.indexOf((await storage.findLink('user', id)).id ?? ''));
      results.push(await storage.isForgotten('user', id));
      const links = await storage.findRows('user', id);
      results.push(links.map((link) => [ids.indexOf(link.internalId), real.allIdsOf(link).sort()]));
    } else if (name === 'insert') {
      const inserted = await storage.insertLink('user', id).catch(real.sqlStateOf);
      if (inserted?.includes('-')) ids.push(inserted);
      results.push(inserted?.includes('-') ? 'inserted' : inserted);
    } else if (name === 'delete')
      results.push([...(await storage.deleteLink('user', id, 30, { by: 'me' }))].sort());
    else await storage.move(id, to);
  }
  return results;
}

test('The fakes of the functions that query the database return the same results as the real ones', async () => {
  const id = fc.constantFrom(...IDS);
  const operation = fc.tuple(fc.constantFrom(...(['find', 'insert', 'delete', 'move'] as const)), id, id);
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 4, maxLength: 14 }), async (generated) => {
      // Applies the operations to the fakes once, to leave out the moves that `users relink` rejects.
      fake.reset();
      const operations: Operation[] = [];
      for (const each of generated) {
        const [name, from, to] = each;
        if (name === 'move' && (from === to || !fake.canMove(from, to))) continue;
        operations.push(each);
        await resultsOf(FAKE, [each]);
      }
      fake.reset();
      await database.pool.query('DELETE FROM users; DELETE FROM forgotten_users');
      expect(await resultsOf(FAKE, operations)).toEqual(await resultsOf(REAL, operations));
    }),
    { numRuns: 20 },
  );
});
