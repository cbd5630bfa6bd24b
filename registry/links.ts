import { prisma } from '../../prisma';

// Change these names if your own table links the users: the Prisma client, the model, its id, its unique column for Clerk's id.
export const users = () => prisma.identityLink;
export const ID = 'userId';
export const CLERK_ID = 'identityProviderUserId';

/** Returns the other columns that a new row of your table needs, such as an email from `clerkClient()`. */
const otherColumns = async (_clerkUserId: string) => ({});

/** Returns the internal id of a Clerk user. */
export async function findLink(clerkUserId: string): Promise<string | undefined> {
  const row = await users().findUnique({ where: { [CLERK_ID]: clerkUserId }, select: { [ID]: true } });
  return row?.[ID].toString();
}

/** Inserts the row of a Clerk user. Returns the internal id only to the call that inserted the row. */
export async function insertLink(clerkUserId: string, _issuedAt?: number): Promise<string | undefined> {
  const data = [{ [CLERK_ID]: clerkUserId, ...(await otherColumns(clerkUserId)) }];
  const [row] = await users().createManyAndReturn({ data, skipDuplicates: true, select: { [ID]: true } });
  return row?.[ID].toString();
}

/** Returns false. Only the service has forgotten users. */
export const isForgotten = async (_clerkUserId: string, _issuedAt?: number): Promise<boolean> => false;
