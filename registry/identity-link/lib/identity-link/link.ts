import { retryOnConflict, withTimeout } from './concurrency';
import { prisma } from './prisma';

async function findOrCreate(identityProviderUserId: string) {
  const where = { identityProviderUserId };
  const existing = await prisma.identityLink.findUnique({ where });
  if (existing) return { userId: existing.userId, created: false };
  // INSERT … ON CONFLICT DO NOTHING RETURNING: PostgreSQL returns a row only to the statement that inserted it.
  const [inserted] = await prisma.identityLink.createManyAndReturn({ data: [where], skipDuplicates: true });
  const { userId } = inserted ?? (await prisma.identityLink.findUniqueOrThrow({ where }));
  return { userId, created: inserted !== undefined };
}

/**
 * Links a Clerk user to an internal id exactly once. The unique key ensures this for concurrent calls. `created` is true for at
 * most one call across all processes. Rejects after 8 s, or with the error of the database. A rejected call can be repeated.
 */
export function registerByIdentityProviderUserId(identityProviderUserId: string) {
  const registration = retryOnConflict(() => findOrCreate(identityProviderUserId));
  return withTimeout(8_000, registration);
}
