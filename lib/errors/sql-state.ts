const property = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;

/** Returns the SQLSTATE (such as 42501) of the database error behind a Prisma error, or undefined if there is none. */
export function sqlStateOf(error: unknown): string | undefined {
  const driverError = property(property(error, 'meta'), 'driverAdapterError');
  const code = property(property(driverError, 'cause'), 'originalCode');
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}
