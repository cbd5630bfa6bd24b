import { json, route } from '../../../../../lib/identity-link/http/route';
import {
  type EventHandlers,
  limitWebhookBody,
  receiveWebhook,
} from '../../../../../lib/identity-link/webhook';
import * as config from '../../../../../lib/identity-link.config';

/** POST /webhooks/idp/v1/user-created: receives a signed event of Clerk, and runs the handler of its type. */
export const POST = route(async (request) => {
  const { events }: { readonly users: unknown; readonly events?: EventHandlers } = config;
  const secrets = process.env['CLERK_WEBHOOK_SIGNING_SECRET'] ?? process.env['CLERK_WEBHOOK_SECRET'];
  if (!secrets?.trim()) throw new Error('CLERK_WEBHOOK_SIGNING_SECRET is missing');
  const body = await limitWebhookBody(request).text();
  return json(await receiveWebhook(body, request.headers, secrets.trim().split(/\s+/), events));
});
