import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ProviderPage, ProviderUser } from '#lib/idp/backend-api';
import { type Place, walk } from '#lib/users/walk';

/** The provider's list, as the API describes it: the oldest first, in one order at any time. */
function listOf(
  users: readonly ProviderUser[],
  { createdAfter, offset, limit }: ProviderPage,
): ProviderUser[] {
  return users
    .filter(({ createdAt }) => createdAfter === undefined || createdAt > createdAfter)
    .toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1))
    .slice(offset, offset + limit);
}

async function seenBy(
  read: (page: ProviderPage) => readonly ProviderUser[],
  options: { from?: Place | undefined; limit: number },
): Promise<string[]> {
  const seen: string[] = [];
  for await (const { users } of walk(async (page) => read(page), options))
    seen.push(...users.map(({ id }) => id));
  return seen;
}

/** Few milliseconds for many users: most share theirs, as after an import. */
const users = fc
  .array(fc.integer({ min: 1, max: 6 }), { maxLength: 40 })
  .map((times) =>
    times.map((createdAt, index) => ({ id: `user_${String(index).padStart(2, '0')}`, createdAt })),
  );
const limit = fc.integer({ min: 2, max: 7 });

test('of a list that does not change, everybody is seen once, in order', async () => {
  await fc.assert(
    fc.asyncProperty(users, limit, async (all, limit) => {
      const seen = await seenBy((page) => listOf(all, page), { limit });
      expect(seen).toEqual(listOf(all, { offset: 0, limit: 1_000 }).map(({ id }) => id));
    }),
  );
});

test('whoever is there all the time is seen, whoever signs up and is deleted meanwhile', async () => {
  const change = fc.record({ deletes: fc.array(fc.nat(60), { maxLength: 4 }), signUps: fc.nat(2) });
  await fc.assert(
    fc.asyncProperty(users, limit, fc.array(change, { maxLength: 20 }), async (all, limit, changes) => {
      let there: ProviderUser[] = all;
      const pending = [...changes];
      let born = 0;
      const read = (page: ProviderPage) => {
        const rows = listOf(there, page);
        const { deletes = [], signUps = 0 } = pending.shift() ?? {};
        there = there.filter((_, index) => !deletes.includes(index));
        for (let each = 0; each < signUps; each += 1) {
          born += 1;
          there = [...there, { id: `user_new_${born}`, createdAt: 10 + born }];
        }
        return rows;
      };
      const seen = new Set(await seenBy(read, { limit }));
      expect(all.filter((user) => there.includes(user) && !seen.has(user.id))).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

test('from any place that was told, another walk sees the rest, and nobody twice', async () => {
  await fc.assert(
    fc.asyncProperty(users, limit, async (all, limit) => {
      const read = (page: ProviderPage) => listOf(all, page);
      const before: string[] = [];
      for await (const step of walk(async (page) => read(page), { limit })) {
        before.push(...step.users.map(({ id }) => id));
        const rest = await seenBy(read, { from: step.place, limit });
        expect([...before, ...rest]).toEqual(listOf(all, { offset: 0, limit: 1_000 }).map(({ id }) => id));
      }
    }),
  );
});

test.each<[string, (page: ProviderPage) => ProviderUser[], string]>([
  ['newest first', () => [2, 1].map((createdAt) => ({ id: `user_${createdAt}`, createdAt })), 'in order'],
  [
    'from the start again',
    () => [1, 2].map((createdAt) => ({ id: `user_${createdAt}`, createdAt })),
    'in order',
  ],
  [
    'in an order of chance',
    ({ offset, limit }) =>
      Array.from({ length: limit }, (_, index) => ({
        id: `user_${offset}_${index}_${Math.random()}`,
        createdAt: 1,
      })),
    'ever another order',
  ],
])('a list that cannot be walked ends the walk: %s', async (_name, read, words) => {
  await expect(seenBy(read, { limit: 2 })).rejects.toThrow(words);
});
