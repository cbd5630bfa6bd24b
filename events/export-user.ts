import type { ExportUser } from '#lib/operator/export';

/**
 * Returns no rows until you edit this function. If you have tables of your own, return the user's rows in these tables, for
 * example `{ notes: [...] }`. The command `npm run users -- export` prints the returned object.
 */
export const exportOwnTables: ExportUser = async () => ({});
