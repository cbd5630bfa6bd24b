import { json, route } from '#lib/http/route';

/** GET /health/alive: 200 for as long as the process answers; it asks nobody. */
export const GET = route(() => json({ status: 'ok' }), '/health/alive', { quiet: true });
