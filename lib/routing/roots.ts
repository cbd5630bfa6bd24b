/** First segments of the API's paths. Every response below them is JSON. One a line, so that additions do not conflict. */
// biome-ignore format: one a line
export const API_ROOTS = [
  'auth',
  'health',
  'users',
  'webhooks',
] as const;

/** Pages with one address each, besides the home page and the forms of the identity provider. */
// biome-ignore format: one a line
export const PAGES = [
  'account',
  'docs',
] as const;
