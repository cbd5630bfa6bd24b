import { json, route } from '#lib/http/route';
import { MAX_NAME_LENGTH, PAGE_SIZE } from '#lib/tables/projects';

/** GET /projects/v1/limits: returns the limits of names and lists. It has no guard, so it needs no session. */
export const GET = route(
  () => json({ maxNameLength: MAX_NAME_LENGTH, pageSize: PAGE_SIZE }),
  '/projects/v1/limits',
);
