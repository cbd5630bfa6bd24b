/** The ids of a user. `userId` is undefined if the user is not linked (has no row in `users`). */
interface ExportedUser {
  readonly userId: string | undefined;
  readonly identityProviderUserId: string;
  readonly previousIds: readonly { readonly identityProviderUserId: string; readonly expiresAt: Date }[];
}

/** Returns the rows of a user in the tables that you add to the database. The result must be serializable as JSON. */
export type ExportUser = (user: ExportedUser) => Promise<Readonly<Record<string, unknown>>>;

/**
 * Returns no rows until you edit this function. If you have tables of your own, return the user's rows in these tables, for
 * example `{ notes: [...] }`. The command `npm run users -- export` prints the returned object.
 */
export const exportOwnTables: ExportUser = async () => ({});
