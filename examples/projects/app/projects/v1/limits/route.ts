import { json, route } from '#lib/http/route';
import { MAX_NAME_LENGTH, PAGE_SIZE } from '#lib/tables/projects';

/** GET /projects/v1/limits: returns the limits of names and lists. The route does not check the session of the caller. */
export const GET = route(() => json({ maxNameLength: MAX_NAME_LENGTH, pageSize: PAGE_SIZE }));
