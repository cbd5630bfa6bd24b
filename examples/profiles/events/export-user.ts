import type { ExportUser } from '#lib/operator/export';
import { findProfile } from '#lib/tables/profiles';

/** Returns the profile of a user for `npm run users -- export`. */
export const exportOwnTables: ExportUser = async ({ userId }) =>
  userId === undefined ? {} : { profile: await findProfile(userId) };
