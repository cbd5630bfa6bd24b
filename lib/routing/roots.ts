/** First segments of the API paths. Every response below them is JSON. */
// biome-ignore format: one entry per line, so that additions do not conflict
export const API_ROOTS = [
  'auth',
  'health',
  'users',
  'webhooks',
] as const;

/** Pages besides the home page and the sign-in and sign-up pages. Each has one path. */
// biome-ignore format: one entry per line, so that additions do not conflict
export const PAGES = [
  'account',
  'docs',
] as const;
