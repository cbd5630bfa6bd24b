import { z } from 'zod';
import { type ApiResponse, parse } from '../http';

/** Query parameters of a list. As at Clerk, a limit below 1 or above 500 is ignored, so the list has the first ten rows. */
export const Page = z.object({
  limit: z.coerce.number().int().pipe(z.number().min(1).max(500).catch(10)).default(10),
  offset: z.coerce.number().int().min(0).default(0),
});

/** Returns the requested page of a list and the number of all rows. */
export function listOf<Row>(
  { searchParams }: URL,
  rows: readonly Row[],
  format: (row: Row) => unknown,
): ApiResponse {
  const { limit, offset } = parse(Page, Object.fromEntries(searchParams));
  return { body: { data: rows.slice(offset, offset + limit).map(format), total_count: rows.length } };
}
