import { notFound } from '#lib/http/route';

/** Responds to unknown paths below an API root with 404 in JSON. `rewrites` in next.config.ts sends these requests here. */
export {
  notFound as DELETE,
  notFound as GET,
  notFound as OPTIONS,
  notFound as PATCH,
  notFound as POST,
  notFound as PUT,
};
