import * as z from 'zod/mini';

const FromPostgres = z.object({
  meta: z.object({
    driverAdapterError: z.object({
      cause: z.object({ originalCode: z.string().check(z.regex(/^[0-9A-Z]{5}$/)) }),
    }),
  }),
});

/** The code that PostgreSQL gave (its SQLSTATE, such as 42501), behind an error of Prisma; undefined if it gave none. */
export function sqlStateOf(error: unknown): string | undefined {
  return FromPostgres.safeParse(error).data?.meta.driverAdapterError.cause.originalCode;
}
