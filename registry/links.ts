import { CLERK_ID, ID, insert, otherColumns, users } from '../../identity-link.config';

/** Returns the internal id of a Clerk user. */
export async function findLink(clerkUserId: string): Promise<string | undefined> {
  const row = await users().findUnique({ where: { [CLERK_ID]: clerkUserId }, select: { [ID]: true } });
  return row?.[ID].toString();
}

/**
 * Inserts the row of a Clerk user. Returns the internal id only to the call that inserted the row. Throws an error whose cause
 * names the column if another row has one of the unique values.
 */
export async function insertLink(clerkUserId: string, _issuedAt?: number): Promise<string | undefined> {
  const columns = await otherColumns(clerkUserId);
  if (columns === undefined) return undefined;
  const row = { [CLERK_ID]: clerkUserId, ...columns };
  const [inserted] = await insert(row, true);
  if (inserted) return inserted[ID].toString();
  if (await findLink(clerkUserId)) return undefined;
  // `insert` may take over a row that another transaction has just committed. Otherwise, PostgreSQL now names the column.
  try {
    const [second] = await insert(row, false);
    return second?.[ID].toString();
  } catch (cause) {
    if (await findLink(clerkUserId)) return undefined;
    throw new Error('The row of a new user cannot be inserted', { cause });
  }
}

/** Returns true for a user whom Clerk does not have. */
export const isForgotten = async (clerkUserId: string, _issuedAt?: number): Promise<boolean> =>
  (await otherColumns(clerkUserId)) === undefined;
