import { readiness } from '#lib/health';
import { json, route } from '#lib/http/route';

/**
 * GET /health/ready: 200 if requests should be sent to this process, else 503. With `quiet`, the log line of a request has the
 * level `debug` unless the handler throws.
 */
export const GET = route(
  async () => {
    const result = await readiness();
    return json(result, 'errors' in result ? 503 : 200);
  },
  { quiet: true },
);
