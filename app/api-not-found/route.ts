import { HttpError } from '#lib/http/error';
import { route } from '#lib/http/route';

/** Responds with 404 in JSON to a request for an unknown API path. next.config.ts rewrites these paths to this route. */
const notFound = route(
  () => {
    throw new HttpError(404, 'Not found');
  },
  { name: 'unknown' },
);

export {
  notFound as DELETE,
  notFound as GET,
  notFound as OPTIONS,
  notFound as PATCH,
  notFound as POST,
  notFound as PUT,
};
