import { prisma } from './prisma';

// What your application decides about its users. An upgrade of identity-link does not change this file.

/** The model that links the users, its id, and its unique column for Clerk's user id. */
export const users = () => prisma.identityLink;
export const ID = 'userId';
export const CLERK_ID = 'identityProviderUserId';

/** Returns the other columns of a new row, or undefined if Clerk has no such user, who then gets no row. */
export const otherColumns = async (_clerkUserId: string) => ({});

/** Inserts a row and returns its id. Only one call inserts the row of a user, so work that belongs to a new user starts here. */
export const insert = (row: Row, skipDuplicates: boolean) =>
  users().createManyAndReturn({ data: [row], skipDuplicates, select: { [ID]: true } });

type Row = { [CLERK_ID]: string } & NonNullable<Awaited<ReturnType<typeof otherColumns>>>;

/** Reports the error behind a 500, which the client does not get. */
export const logError = (error: unknown, request: string): void => console.error(`${request}:`, error);
