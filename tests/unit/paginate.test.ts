import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ProviderPage, ProviderUser } from '#lib/idp/backend-api';
import { type Cursor, paginate } from '#lib/users/paginate';
import { arrivalTimes } from '../harness/arrival-times';

/** A user in the provider's database. The time is the creation time in milliseconds, with decimals. */
interface Row {
  readonly id: string;
  readonly time: number;
}

const userOf = ({ id, time }: Row): ProviderUser => ({ id, createdAt: Math.floor(time) });

/**
 * Returns a page of users as the provider's API does: the oldest users first, in a stable order. Compares `createdAfter` with
 * the exact creation time.
 */
function listOf(rows: readonly Row[], { createdAfter, offset, limit }: ProviderPage): ProviderUser[] {
  return rows
    .filter(({ time }) => createdAfter === undefined || time > createdAfter)
    .toSorted((one, other) => one.time - other.time || (one.id < other.id ? -1 : 1))
    .slice(offset, offset + limit)
    .map(userOf);
}

const idsOf = (rows: readonly Row[]) => listOf(rows, { offset: 0, limit: 1_000 }).map(({ id }) => id);

/** Returns the ids of the users that paginate() yields. `read` returns a page of the provider's list. */
async function seenBy(
  read: (page: ProviderPage) => readonly ProviderUser[],
  options: { from?: Cursor | undefined; limit: number },
): Promise<string[]> {
  const seen: string[] = [];
  for await (const { users } of paginate(async (page) => read(page), options))
    seen.push(...users.map(({ id }) => id));
  return seen;
}

const limit = fc.integer({ min: 2, max: 7 });
/** Generates lists of up to 40 users. `time` generates the creation times. Many users are created in the same millisecond. */
const rowsWith = (time: fc.Arbitrary<number>) =>
  fc
    .array(time, { maxLength: 40 })
    .map((times) => times.map((time, index) => ({ id: `user_${String(index).padStart(2, '0')}`, time })));

describe.each([
  ['milliseconds', rowsWith(fc.integer({ min: 1, max: 6 }))],
  ['microseconds', rowsWith(fc.integer({ min: 1_000, max: 6_000 }).map((micros) => micros / 1_000))],
  [
    'microseconds, within one millisecond',
    rowsWith(fc.integer({ min: 1_000, max: 1_999 }).map((micros) => micros / 1_000)),
  ],
])('With creation times in %s', (_resolution, table) => {
  test('paginate() returns each user of an unchanged list once, in the order of the list', async () => {
    await fc.assert(
      fc.asyncProperty(table, limit, async (rows, limit) => {
        expect(await seenBy((page) => listOf(rows, page), { limit })).toEqual(idsOf(rows));
      }),
      { numRuns: 300 },
    );
  });

  test('paginate() returns each user that exists during the whole run exactly once, even if other users sign up or are deleted', async () => {
    const change = fc.record({ deletes: fc.array(fc.nat(60), { maxLength: 4 }), signUps: fc.nat(2) });
    await fc.assert(
      fc.asyncProperty(table, limit, fc.array(change, { maxLength: 20 }), async (rows, limit, changes) => {
        let present: Row[] = rows;
        const pending = [...changes];
        let created = 0;
        const read = (page: ProviderPage) => {
          const users = listOf(present, page);
          const { deletes = [], signUps = 0 } = pending.shift() ?? {};
          present = present.filter((_, index) => !deletes.includes(index));
          for (let each = 0; each < signUps; each += 1) {
            created += 1;
            present = [...present, { id: `user_new_${created}`, time: 10 + created }];
          }
          return users;
        };
        const seen = await seenBy(read, { limit });
        expect(new Set(seen).size).toBe(seen.length);
        expect(rows.filter((row) => present.includes(row) && !seen.includes(row.id))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test('If paginate() continues from any of its cursors, it returns exactly the remaining users', async () => {
    await fc.assert(
      fc.asyncProperty(table, limit, async (rows, limit) => {
        const read = (page: ProviderPage) => listOf(rows, page);
        const before: string[] = [];
        for await (const { users, cursor } of paginate(async (page) => read(page), { limit })) {
          before.push(...users.map(({ id }) => id));
          const rest = await seenBy(read, { from: cursor, limit });
          expect([...before, ...rest]).toEqual(idsOf(rows));
        }
      }),
    );
  });
});

test('paginate() returns 20,000 users with fewer than 50 requests if about 100 users were created per second', async () => {
  const rows = arrivalTimes(20_000, 100).map((time, index) => ({ id: `user_${index}`, time }));
  let requests = 0;
  const read = ({ createdAfter = 0, offset, limit }: ProviderPage) => {
    requests += 1;
    const first = rows.findIndex(({ time }) => time > createdAfter);
    return first === -1 ? [] : rows.slice(first + offset, first + offset + limit).map(userOf);
  };
  expect(await seenBy(read, { limit: 500 })).toEqual(rows.map(({ id }) => id));
  expect(requests).toBeLessThan(50);
});

test.each<[string, (page: ProviderPage) => ProviderUser[], string]>([
  ['newest first', () => [2, 1].map((createdAt) => ({ id: `user_${createdAt}`, createdAt })), 'in order'],
  [
    'the same page for every request',
    () => [1, 5].map((createdAt) => ({ id: `user_${createdAt}`, createdAt })),
    'in order',
  ],
  [
    'in a random order',
    ({ offset, limit }) =>
      Array.from({ length: limit }, (_, index) => ({
        id: `user_${offset}_${index}_${Math.random()}`,
        createdAt: 1,
      })),
    'a different order each time',
  ],
])(
  'paginate() rejects if the list of the provider is not sorted by creation time or has no stable order: %s',
  async (_name, read, words) => {
    await expect(seenBy(read, { limit: 2 })).rejects.toThrow(words);
  },
);

test('paginate() rejects after 20 restarts at one creation time, but not after 20 restarts at different creation times', async () => {
  let requests = 0;
  const unstable = ({ limit }: ProviderPage) => {
    requests += 1;
    return Array.from({ length: limit }, (_, index) => ({ id: `user_${requests}_${index}`, createdAt: 1 }));
  };
  await expect(seenBy(unstable, { limit: 2 })).rejects.toThrow('a different order each time');
  // The first request returns the first page. For more users with the same creation time, the next requests have an offset. If
  // the order of the users changes between two requests, paginate() restarts without an offset. The 21 attempts (the first one
  // and 20 restarts) take two requests each: one without an offset and one with an offset.
  expect(requests).toBe(1 + 2 * 21);
  const rows = Array.from({ length: 100 }, (_, index) => ({
    id: `user_${String(index).padStart(2, '0')}`,
    time: Math.floor(index / 4) * 10,
  }));
  const restarted = new Set<number | undefined>();
  // For each `createdAfter`, the first request with an offset skips a row, as if a user had been deleted. `paginate` then
  // starts again for this creation time.
  const read = (page: ProviderPage) => {
    const skips = page.offset > 0 && !restarted.has(page.createdAfter);
    if (skips) restarted.add(page.createdAfter);
    return listOf(rows, { ...page, offset: page.offset + (skips ? 1 : 0) });
  };
  expect(await seenBy(read, { limit: 2 })).toEqual(idsOf(rows));
  expect(restarted.size).toBeGreaterThan(20);
});

test('A cursor of paginate() contains a returned user only if the next request can return this user again', async () => {
  const rows = [1, 5, 8, 9].map((time) => ({ id: `user_${time}`, time }));
  const cursors: Cursor[] = [];
  for await (const { users, cursor } of paginate(async (page) => listOf(rows, page), { limit: 2 })) {
    expect(users).not.toEqual([]);
    cursors.push(cursor);
  }
  // The next request starts one millisecond before the cursor, so it requests users that were created after 8 ms. The response
  // may contain the user with the time 8, because the provider may store fractions of a millisecond.
  expect(cursors.at(-1)).toEqual({ createdAt: 9, seen: rows.slice(2).map(userOf) });
});
