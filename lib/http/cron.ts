import { createHash, timingSafeEqual } from 'node:crypto';
import { HttpError } from '../core/error';
import { addLogFields } from './request-log';
import { json, type RouteContext, type RouteHandler, route } from './route';

const digest = (text: string) => createHash('sha256').update(text).digest();

/**
 * Creates a route that calls `work` only if the request has `authorization: Bearer <CRON_SECRET>`, as Vercel's cron jobs send it,
 * and responds with the result in JSON. Compares the secret in constant time. The response to any other request is a 401, and to
 * every request if CRON_SECRET has fewer than 16 characters.
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
