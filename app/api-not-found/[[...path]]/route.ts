import { notFound } from '#lib/http/route';

/** What next.config.ts makes of an unknown path below an API root: JSON, as every answer there. */
export {
  notFound as DELETE,
  notFound as GET,
  notFound as OPTIONS,
  notFound as PATCH,
  notFound as POST,
  notFound as PUT,
};
