import { findProfile } from './profiles';

/** The ids of a user. `userId` is undefined if the user is not linked (has no row in `users`). */
interface ExportedUser {
  readonly userId: string | undefined;
  readonly identityProviderUserId: string;
  readonly previousIds: readonly { readonly identityProviderUserId: string; readonly expiresAt: Date }[];
}

/** Returns the rows of a user in the tables that you add to the database. The result must be serializable as JSON. */
export type ExportUser = (user: ExportedUser) => Promise<Readonly<Record<string, unknown>>>;

/** Returns the profile of a user for `npm run users -- export`. */
export const exportOwnTables: ExportUser = async ({ userId }) =>
  userId === undefined ? {} : { profile: await findProfile(userId) };
