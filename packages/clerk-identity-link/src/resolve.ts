import type { Kind } from '#lib/ids/kinds';
import { register } from '#lib/register';

// The service caches internal ids here.
export const readId = async (_kind: Kind, _clerkId: string) => undefined;

/** Returns the internal id of a user or an organization of Clerk, and links a new one. */
export async function resolveId(kind: Kind, clerkId: string, issuedAt?: number, _read?: unknown) {
  const registration = await register(kind, clerkId, issuedAt);
  if (registration === undefined) return undefined;
  const caller = registration.created ? ('created' as const) : ('existing' as const);
  return { id: registration.id, caller };
}
