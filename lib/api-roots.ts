/**
 * Where the API's routes lie: below these, every answer is JSON. A new root is added here and nowhere else.
 *
 * One a line, so that roots of one's own meet no conflict.
 */
// biome-ignore format: one a line
export const API_ROOTS = [
  'auth',
  'users',
  'webhooks',
] as const;
