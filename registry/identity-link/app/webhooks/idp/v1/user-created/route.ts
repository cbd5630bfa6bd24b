import { route } from '../../../../../lib/identity-link/guard';
import { receiveWebhook } from '../../../../../lib/identity-link/webhook';

/** POST /webhooks/idp/v1/user-created: receives a signed event of Clerk. */
export const POST = route(async (request) => Response.json(await receiveWebhook(request)));
