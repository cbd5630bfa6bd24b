import { createHash, timingSafeEqual } from 'node:crypto';
import { HttpError } from '#lib/http/error';
import { json, route } from '#lib/http/route';
import { backfill } from '#lib/users/backfill';

const TWO_DAYS_MS = 172_800_000;
const digest = (text: string) => createHash('sha256').update(text).digest();

function isCronRequest(authorization: string | null): boolean {
  const secret = process.env['CRON_SECRET'] ?? '';
  return secret.length >= 16 && timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${secret}`));
}

/**
 * GET /cron/v1/backfill: links the unlinked users that the identity provider created in the last two days. Each of them gets an
 * internal id.
 */
export const GET = route(async ({ headers }) => {
  if (!isCronRequest(headers.get('authorization'))) throw new HttpError(401, 'Unauthorized');
  let linked = 0;
  const since = new Date(Date.now() - TWO_DAYS_MS);
  for await (const step of backfill({ since, retryOptions: { seconds: 20 } })) linked += step.linked;
  return json({ linked });
});

/** Time limit of the function on Vercel, in seconds. */
export const maxDuration = 60;
