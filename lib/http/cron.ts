import { createHash, timingSafeEqual } from 'node:crypto';
import { HttpError } from '../core/error';
import { addLogFields } from './request-log';
import { json, type RouteContext, type RouteHandler, route } from './route';

const digest = (text: string) => createHash('sha256').update(text).digest();

/**
 * Creates a route that responds with the result of `work` in JSON to `authorization: Bearer <CRON_SECRET>`, as Vercel's cron jobs
 * send it. Compares the secret in constant time. Any other request gets a 401, and every one if CRON_SECRET has fewer than 16
 * characters.
 */
export const cronRoute = (work: () => Promise<object>): RouteHandler<RouteContext> =>
  route(async ({ headers }) => {
    const secret = process.env['CRON_SECRET'] ?? '';
    const given = digest(headers.get('authorization') ?? '');
    if (secret.length < 16 || !timingSafeEqual(given, digest(`Bearer ${secret}`))) {
      addLogFields({ reason: 'cron-secret' });
      throw new HttpError(401, 'Unauthorized');
    }
    return json(await work());
  });
