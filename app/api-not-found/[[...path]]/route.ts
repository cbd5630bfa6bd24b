import { notFound } from '#lib/http/route';

/** Responds with 404 in JSON. `rewrites` in next.config.ts sends unknown paths below an API root, such as `/users`, here. */
export {
  notFound as DELETE,
  notFound as GET,
  notFound as OPTIONS,
  notFound as PATCH,
  notFound as POST,
  notFound as PUT,
};
