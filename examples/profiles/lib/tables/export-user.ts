import { findProfile } from './profiles';

type User = { readonly userId: string | undefined };

/** Returns the profile of a user for `npm run users -- export`. */
export const exportOwnTables = async ({ userId }: User) =>
  userId === undefined ? {} : { profile: await findProfile(userId) };
