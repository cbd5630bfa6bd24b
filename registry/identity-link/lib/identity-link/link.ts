import { retryOnConflict, withTimeout } from './concurrency';
import { prisma } from './prisma';

/** The link of a Clerk user to the internal id `userId`. `created` is true for at most one call in all processes. */
export interface Registration {
  readonly userId: string;
  readonly created: boolean;
}

async function findOrCreate(identityProviderUserId: string): Promise<Registration> {
  const where = { identityProviderUserId };
  const existing = await prisma.identityLink.findUnique({ where });
  if (existing) return { userId: existing.userId, created: false };
  // INSERT … ON CONFLICT DO NOTHING RETURNING: PostgreSQL returns a row only to the statement that inserted it.
  const [inserted] = await prisma.identityLink.createManyAndReturn({ data: [where], skipDuplicates: true });
  const { userId } = inserted ?? (await prisma.identityLink.findUniqueOrThrow({ where }));
  return { userId, created: inserted !== undefined };
}

/**
 * Links a Clerk user to an internal id exactly once and returns the link. The unique key decides every race. Rejects after 8 s,
 * before the sender of a webhook stops waiting, or with the error of the database. A rejected call can be repeated.
 */
export function registerByIdentityProviderUserId(identityProviderUserId: string): Promise<Registration> {
  const registration = retryOnConflict(() => findOrCreate(identityProviderUserId));
  return withTimeout(8_000, registration);
}
