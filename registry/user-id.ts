import { registerByIdentityProviderUserId } from './register';

/** Returns the internal id of a Clerk user, and links a new user. */
export const resolveUserId = async (clerkUserId: string, issuedAt?: number): Promise<string | undefined> =>
  (await registerByIdentityProviderUserId(clerkUserId, issuedAt))?.userId;
