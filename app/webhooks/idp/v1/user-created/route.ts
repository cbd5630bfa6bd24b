import { events } from '#events';
import { limitBody } from '#lib/http/body';
import { json, route } from '#lib/http/route';
import { INVALID_SIGNATURE, receiveWebhook } from '#lib/webhook';

const MAX_BYTES = 1024 * 1024;

/** POST /webhooks/idp/v1/user-created: receives a signed event of the identity provider (docs/contract.md, 4.2). */
export const POST = route(async (request) => {
  const req = limitBody(request, { maxBytes: MAX_BYTES, notUtf8: INVALID_SIGNATURE });
  return json(await receiveWebhook(await req.text(), request.headers, events));
}, '/webhooks/idp/v1/user-created');
