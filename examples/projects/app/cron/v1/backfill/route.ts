import { cronRoute } from '#lib/http/cron';
import { backfill } from '#lib/operator/backfill';

const TWO_DAYS_MS = 172_800_000;

/**
 * GET /cron/v1/backfill: links the unlinked users that the identity provider created in the last two days. Each of them gets an
 * internal id.
 */
export const GET = cronRoute(async () => {
  let linked = 0;
  const since = new Date(Date.now() - TWO_DAYS_MS);
  for await (const page of backfill({ since, retryOptions: { seconds: 20 } }))
    linked += page.filter(({ outcome }) => outcome === 'linked').length;
  return { linked };
});

/** Time limit of the function on Vercel, in seconds. */
export const maxDuration = 60;
