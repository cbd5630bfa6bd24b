import type { ExportUser } from '#lib/users/export';

/**
 * Returns the user's rows in your own tables, for example `{ notes: [...] }`. The command `npm run users:export` prints them.
 */
export const exportOwnTables: ExportUser = async () => ({});
