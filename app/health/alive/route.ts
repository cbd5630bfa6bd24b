import { json, route } from '#lib/http/route';

/** GET /health/alive: 200 if the process responds. It does not check the dependencies. */
export const GET = route(() => json({ status: 'ok' }), '/health/alive', { quiet: true });
