import type { KeyObject } from 'node:crypto';
import * as z from 'zod/mini';
import { type Acknowledgment, IdentityProviderUserId, WebhookEvent } from './api/schemas';
import { decodeSigningSecret, verifyWebhookSignature } from './crypto/webhook-signature';
import { environment } from './env';
import { type EventHandlers, handleEvent, INVALID_EVENT } from './events';
import { parseJson } from './http/body';
import { HttpError } from './http/error';
import { addLogFields } from './log';
import { outcomeOf, registerByIdentityProviderUserId } from './register';
import { withSpan } from './telemetry/with-span';

/** Public message for every signature error. It does not state which check failed. */
export const INVALID_SIGNATURE = 'Invalid webhook signature';

let decodedKeys: readonly KeyObject[] | undefined;

/** Decodes the signing secrets on first use. Several secrets are valid at once during a rotation. */
function signingKeys(): readonly KeyObject[] {
  decodedKeys ??= environment().IDP_WEBHOOK_SIGNING_SECRET.map(decodeSigningSecret);
  return decodedKeys;
}

/** Time of the event in milliseconds since 1970, if the event has one. */
const EventTime = z.object({ timestamp: z.number() });
const EventUser = z.object({ id: z.optional(z.unknown()) });

/**
 * Returns the id of the user to register, which is the `data.id` of a `user.created` event. Returns undefined if there is none.
 */
function userToRegister({ type, data }: WebhookEvent): string | undefined {
  const id = EventUser.safeParse(data).data?.id;
  if (type !== 'user.created' || id === undefined || id === null || id === '') return undefined;
  const identityProviderUserId = IdentityProviderUserId.safeParse(id);
  if (!identityProviderUserId.success) throw new HttpError(400, INVALID_EVENT);
  return identityProviderUserId.data;
}

/**
 * Verifies a delivery, registers the user of a `user.created` event, runs the handler of the event if `handlers` has one, and
 * returns the acknowledgment (docs/contract.md, 4.2 and 6.1). A `user.created` event has no effect if an operator has deleted
 * the user ("forgotten").
 *
 * `payload` must be the exact text of the request body. Deliveries may arrive late, repeatedly and in any order. If the user
 * already has an internal id, the id stays unchanged. Rejects with an HttpError 400 for an absent body, an invalid signature,
 * or a verified body that is not a valid event. Passes errors of the database and the handler through, so that the sender
 * retries the delivery.
 */
export async function receiveWebhook(
  payload: string,
  headers: Headers,
  handlers: EventHandlers,
): Promise<Acknowledgment> {
  if (payload === '') throw new HttpError(400, 'Missing body');
  const signed = await withSpan(
    'verify webhook',
    async () => verifyWebhookSignature(payload, headers, signingKeys()),
    (verified) => (verified === undefined ? 'rejected' : 'verified'),
  );
  if (signed === undefined) throw new HttpError(400, INVALID_SIGNATURE);
  addLogFields({ messageId: signed.id.slice(0, 64) });
  const body = parseJson(payload);
  const event = WebhookEvent.safeParse(body);
  if (!event.success) throw new HttpError(400, INVALID_EVENT);
  const { type } = event.data;
  addLogFields({ eventType: type.slice(0, 64) });
  const identityProviderUserId = userToRegister(event.data);
  // The handler of a `user.created` event does not run if the event has no user id or if the user is forgotten.
  let isHandled = type !== 'user.created';
  if (identityProviderUserId !== undefined) {
    const registration = await registerByIdentityProviderUserId(identityProviderUserId);
    addLogFields({ registered: outcomeOf(registration) });
    isHandled = registration !== undefined;
  }
  const { timestamp } = EventTime.safeParse(body).data ?? {};
  const handler = isHandled && Object.hasOwn(handlers, type) ? handlers[type] : undefined;
  if (handler !== undefined) {
    const delivery = { messageId: signed.id, occurredAt: timestamp ?? signed.sentAt };
    addLogFields({ handler: await handleEvent(handler(event.data.data), delivery) });
  }
  return { received: true, eventType: type };
}
