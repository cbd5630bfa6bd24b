// biome-ignore-all format: one entry per line, so that additions do not conflict
/* Written by `npm run routes` and `npm run dev` from the files in app/. */

/** First segments of the API routes. Paths below them return JSON, unless the path is a page. */
export const API_ROOTS = [
  'auth',
  'health',
  'users',
  'webhooks',
] as const;

/** Paths of the API routes. */
export const API_ROUTES = [
  '/auth/v1/register',
  '/health/alive',
  '/health/ready',
  '/users/v1/me',
  '/webhooks/idp/v1/user-created',
] as const;

/** Paths of the pages. */
export const PAGES = [
  '/',
  '/account',
  '/docs',
  '/sign-in/[[...sign-in]]',
  '/sign-up/[[...sign-up]]',
] as const;
