import { events } from '#events';
import { environment } from '#lib/base/env';
import { json, route } from '#lib/http/route';
import { limitWebhookBody, receiveWebhook } from '#lib/webhook';

/** POST /webhooks/idp/v1/user-created: receives a signed event of the identity provider (docs/contract.md, 4.2). */
export const POST = route(async (request) => {
  const req = limitWebhookBody(request);
  const { IDP_WEBHOOK_SIGNING_SECRET: secrets } = environment();
  return json(await receiveWebhook(await req.text(), request.headers, secrets, events));
});
