/** SQLSTATEs that belong to error codes of Prisma. */
const OF_PRISMA: ReadonlyMap<unknown, string> = new Map([
  ['P2002', '23505'],
  ['P2003', '23503'],
  ['P2034', '40001'],
]);

/** Returns the SQLSTATE (such as 42501) of the database error behind an error of Prisma, or undefined if there is none. */
export function sqlStateOf(error: unknown): string | undefined {
  const { code: prismaCode, meta } = Object(error);
  const { driverAdapterError = error, code: metaCode } = Object(meta);
  const { originalCode } = Object(Object(driverAdapterError).cause);
  const code: unknown = originalCode ?? metaCode ?? OF_PRISMA.get(prismaCode);
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}
