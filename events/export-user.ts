import type { ExportUser } from '#lib/users/export';

/** Returns the rows of a user in your own tables for `npm run users:export`, for example `{ notes: [...] }`. */
export const exportOwnTables: ExportUser = async () => ({});
