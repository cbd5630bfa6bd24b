import type { Figures } from './figures';
import type { Fixtures } from './fixtures';
import type { Server } from './launch';
import { type Level, measureRequests } from './requests';
import { bare, service, type Target } from './targets';

const ROWS_PER_INSERT = 500_000;
/** Scenarios that read or write the table `users`. */
const SCENARIOS = /cache miss|first request|register|webhook, (?:new|duplicate)/;

/**
 * Measures requests to the service for each of `sizes`, the numbers of rows in the table `users`. Inserts the missing rows
 * before each measurement, so `sizes` must be in ascending order.
 */
export async function measureGrowth(
  fixtures: Fixtures,
  sizes: readonly number[],
  options: { levels: readonly Level[]; warmUp: number; start: (target: Target) => Promise<Server> },
): Promise<NonNullable<Figures['growth']>> {
  const { pool } = fixtures;
  const growth: NonNullable<Figures['growth']> = [];
  let rows = 0;
  for (const users of sizes) {
    for (; rows < users; rows += ROWS_PER_INSERT) {
      await pool.query(
        `INSERT INTO users (id, identity_provider_user_id)
         SELECT gen_random_uuid(), 'user_row_' || n FROM generate_series($1::bigint, $2::bigint) AS n
         ON CONFLICT DO NOTHING`,
        [rows + 1, Math.min(rows + ROWS_PER_INSERT, users)],
      );
    }
    rows = users;
    await pool.query('VACUUM ANALYZE users');
    process.stdout.write(`the table contains ${users} users\n`);
    const figures = await measureRequests(fixtures, {
      ...options,
      wanted: SCENARIOS,
      // User ids contain the name of the target (the measured server). Each size has another name, because a user that was
      // registered at one size would not be new at the next size.
      targets: [{ ...service, name: `${service.name}_${users}` }],
      rows: { count: users, name: (index) => `user_row_${index + 1}` },
    });
    for (const { scenario, target, ratio } of figures) {
      if (target !== bare.name) growth.push({ users, scenario, ratio });
    }
  }
  return growth;
}
