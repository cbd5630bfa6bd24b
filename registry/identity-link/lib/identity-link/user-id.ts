import { registerByIdentityProviderUserId } from './link';

/** Returns the internal id of a Clerk user, and links a new user. The item identity-link-cache replaces this file. */
export const resolveUserId = async (identityProviderUserId: string) =>
  (await registerByIdentityProviderUserId(identityProviderUserId)).userId;
