import * as z from 'zod/mini';

const FromPostgres = z.object({
  meta: z.object({
    driverAdapterError: z.object({
      cause: z.object({ originalCode: z.string().check(z.regex(/^[0-9A-Z]{5}$/)) }),
    }),
  }),
});

/** Returns the SQLSTATE (such as 42501) of the database error behind a Prisma error, or undefined if there is none. */
export function sqlStateOf(error: unknown): string | undefined {
  return FromPostgres.safeParse(error).data?.meta.driverAdapterError.cause.originalCode;
}
