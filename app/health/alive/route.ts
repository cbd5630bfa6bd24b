import { json, route } from '#lib/http/route';

/**
 * GET /health/alive: 200 if the process can handle requests. The route does not check the database or the cache. With `quiet`,
 * the log line of a request has the level `debug`.
 */
export const GET = route(() => json({ status: 'ok' }), { quiet: true });
