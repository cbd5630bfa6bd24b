import { findProfile } from '#lib/tables/profiles';
import type { ExportUser } from '#lib/users/export';

/** Returns the profile of a user for `npm run users -- export`. */
export const exportOwnTables: ExportUser = async ({ userId }) =>
  userId === undefined ? {} : { profile: await findProfile(userId) };
