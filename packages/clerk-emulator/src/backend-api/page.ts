import { z } from 'zod';

/** Query parameters of a list. Default: the first ten rows. */
export const Page = z.object({
  limit: z.coerce.number().int().min(1).max(500).default(10),
  offset: z.coerce.number().int().min(0).default(0),
});
