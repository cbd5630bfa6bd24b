import { json, route } from '../../../../../lib/identity-link/http/route';
import { limitWebhookBody, receiveWebhook } from '../../../../../lib/identity-link/webhook';

/** POST /webhooks/idp/v1/user-created: receives a signed event of Clerk. */
export const POST = route(async (request) => {
  const secrets = process.env['CLERK_WEBHOOK_SIGNING_SECRET'] ?? process.env['CLERK_WEBHOOK_SECRET'];
  if (!secrets?.trim()) throw new Error('CLERK_WEBHOOK_SIGNING_SECRET is missing');
  const body = await limitWebhookBody(request).text();
  return json(await receiveWebhook(body, request.headers, secrets.trim().split(/\s+/)));
});
