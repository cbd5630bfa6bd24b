/*
 * What an application adds to when it grows; one a line, so that roots and pages of one's own meet no conflict.
 */

/** Where the API's routes lie: below these, every answer is JSON. */
// biome-ignore format: one a line
export const API_ROOTS = /** @type {const} */ ([
  'auth',
  'health',
  'users',
  'webhooks',
]);

/** Pages at one address each, beside the home page and the forms of the identity provider. */
// biome-ignore format: one a line
export const PAGES = /** @type {const} */ ([
  'account',
  'docs',
]);
