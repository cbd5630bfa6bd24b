import fc from 'fast-check';
import { expect, test } from 'vitest';
import { paginate } from '#lib/operator/paginate';
import type { ProviderEntry, ProviderPage } from '#lib/provider-port';

/** A user in the provider's database. The time is the creation time in milliseconds, with decimals. */
interface Row {
  readonly id: string;
  readonly time: number;
}

/**
 * Returns a page of users as the provider's API does: the oldest users first, in a stable order. Compares `createdAfter` with
 * the exact creation time.
 */
function listOf(rows: readonly Row[], { createdAfter, offset, limit }: ProviderPage): ProviderEntry[] {
  return rows
    .filter(({ time }) => createdAfter === undefined || time > createdAfter)
    .toSorted((one, other) => one.time - other.time || (one.id < other.id ? -1 : 1))
    .slice(offset, offset + limit)
    .map(({ id, time }) => ({ id, createdAt: Math.floor(time) }));
}

const idsOf = (rows: readonly Row[]) => listOf(rows, { offset: 0, limit: 1_000 }).map(({ id }) => id);

/** Returns the ids of the users that paginate() yields. `read` returns a page of the provider's list. */
async function seenBy(
  read: (page: ProviderPage) => readonly ProviderEntry[],
  options: { since?: Date; limit: number },
): Promise<string[]> {
  const seen: string[] = [];
  for await (const users of paginate(async (page) => read(page), options))
    seen.push(...users.map(({ id }) => id));
  return seen;
}

const limit = fc.integer({ min: 2, max: 7 });
const rowsWith = (time: fc.Arbitrary<number>) =>
  fc
    .array(time, { maxLength: 40 })
    .map((times) => times.map((time, index) => ({ id: `user_${String(index).padStart(2, '0')}`, time })));

test.each([
  ['milliseconds', fc.integer({ min: 1, max: 6 })],
  ['microseconds', fc.integer({ min: 1_000, max: 6_000 }).map((micros) => micros / 1_000)],
  ['one millisecond', fc.integer({ min: 1_000, max: 1_999 }).map((micros) => micros / 1_000)],
])(
  'Paging finds each user once, in the order of the list, also from a start time: creation times in %s',
  async (_resolution, time) => {
    await fc.assert(
      fc.asyncProperty(rowsWith(time), limit, fc.integer({ min: 1, max: 6 }), async (rows, limit, start) => {
        const read = (page: ProviderPage) => listOf(rows, page);
        expect(await seenBy(read, { limit })).toEqual(idsOf(rows));
        const rest = rows.filter((row) => row.time > start - 1);
        expect(await seenBy(read, { limit, since: new Date(start) })).toEqual(idsOf(rest));
      }),
    );
  },
);

test('Paging finds each user that exists during the whole run exactly once, even if other users sign up or are deleted', async () => {
  const change = fc.record({ deletes: fc.array(fc.nat(60), { maxLength: 4 }), signUps: fc.nat(2) });
  // No page contains only users with one creation time.
  const table = fc.uniqueArray(fc.integer({ min: 10, max: 100 }), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(table, limit, fc.array(change, { maxLength: 20 }), async (times, limit, changes) => {
      const rows = times.map((time) => ({ id: `user_${time}`, time }));
      let present: Row[] = rows;
      const pending = [...changes];
      let created = 0;
      const read = (page: ProviderPage) => {
        const users = listOf(present, page);
        const { deletes = [], signUps = 0 } = pending.shift() ?? {};
        present = present.filter((_, index) => !deletes.includes(index));
        for (let each = 0; each < signUps; each += 1) {
          created += 1;
          present = [...present, { id: `user_new_${created}`, time: 100 + created }];
        }
        return users;
      };
      const seen = await seenBy(read, { limit });
      expect(new Set(seen).size).toBe(seen.length);
      expect(rows.filter((row) => present.includes(row) && !seen.includes(row.id))).toEqual([]);
    }),
  );
});

test('Paging fails if the provider returns the same page for every request', async () => {
  const page = [1, 5].map((createdAt) => ({ id: `user_${createdAt}`, createdAt }));
  await expect(seenBy(() => page, { limit: 2 })).rejects.toThrow('before the requested time');
});
