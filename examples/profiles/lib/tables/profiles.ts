import { database } from '../storage/database';

/** Returns the stored profile of a user, or null before the first event of the user. Does not call the identity provider. */
export const findProfile = (userId: string) => database().profile.findUnique({ where: { userId } });
