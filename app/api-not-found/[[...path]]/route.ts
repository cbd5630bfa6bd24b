import { notFound } from '#lib/http/route';

/**
 * Responds with 404 in JSON to a request for an unknown path below an API root. An API root is the first segment of API paths,
 * for example `users`. `rewrites` in next.config.ts sends these requests to this route.
 */
export {
  notFound as DELETE,
  notFound as GET,
  notFound as OPTIONS,
  notFound as PATCH,
  notFound as POST,
  notFound as PUT,
};
