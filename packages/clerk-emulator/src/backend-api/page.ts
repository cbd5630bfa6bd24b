import { z } from 'zod';

/** Which part of a list is asked for: ten rows from the start, unless the query says otherwise. */
export const Page = z.object({
  limit: z.coerce.number().int().min(1).max(500).default(10),
  offset: z.coerce.number().int().min(0).default(0),
});
