import { cronRoute } from '#lib/http/cron';
import { handleDueRows } from '#lib/tables/outbox';
import { onboardUser } from '../../../../events/onboard-user';

/** GET /cron/v1/outbox: does the work that is due for new users. Several calls at the same time share the rows. */
export const GET = cronRoute(async () => ({ handled: await handleDueRows(onboardUser) }));

/** Time limit of the function on Vercel, in seconds. */
export const maxDuration = 60;
