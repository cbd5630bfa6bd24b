import { notFound } from '#lib/http/route';

/**
 * Responds with 404 in JSON. An API root is the first segment of API paths, for example `users`. `rewrites` in next.config.ts
 * sends requests for unknown paths below an API root to this route.
 */
export {
  notFound as DELETE,
  notFound as GET,
  notFound as OPTIONS,
  notFound as PATCH,
  notFound as POST,
  notFound as PUT,
};
