import { Webhook, WebhookVerificationError } from 'svix';
import * as z from 'zod/mini';
import { type Acknowledgment, IdentityProviderUserId, WebhookEvent } from './api/schemas';
import { environment } from './env';
import { parseJson } from './http/body';
import { HttpError } from './http/error';
import { noteFacts } from './log';
import { registerByIdentityProviderUserId } from './register';
import { step } from './telemetry';

/** The public message for every fault of a signature: which one it was is nobody's business (contract 7). */
export const INVALID_SIGNATURE = 'Invalid webhook signature';
const INVALID_EVENT = 'Invalid webhook event';

let verifiers: readonly Webhook[] | undefined;

/** One verifier a secret, so that a secret is rotated with no delivery refused. */
function signingSecrets(): readonly Webhook[] {
  verifiers ??= environment().IDP_WEBHOOK_SIGNING_SECRET.map((secret) => new Webhook(secret));
  return verifiers;
}

function isSignedWith(webhook: Webhook, payload: string, headers: Record<string, string>): boolean {
  try {
    webhook.verify(payload, headers);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

/** The library reads a timestamp up to its first other character: only one spelling of a number may pass. */
const TIMESTAMP = /^[1-9]\d{0,14}$/;

function isVerified(payload: string, headers: Headers): boolean {
  const signed = Object.fromEntries(
    ['id', 'timestamp', 'signature'].flatMap((part) => {
      const value = headers.get(`svix-${part}`) ?? headers.get(`webhook-${part}`);
      return value === null ? [] : [[`webhook-${part}`, value]];
    }),
  );
  const valid =
    TIMESTAMP.test(signed['webhook-timestamp'] ?? '') &&
    signingSecrets().some((webhook) => isSignedWith(webhook, payload, signed));
  if (valid) noteFacts({ messageId: (signed['webhook-id'] ?? '').slice(0, 64) });
  return valid;
}

/** When it happened, in milliseconds since 1970, where the event says so. */
const EventTime = z.object({ timestamp: z.number() });
const EventUser = z.object({ id: z.optional(z.unknown()) });

/** The user to register: only `user.created` has one, and only if its `data.id` is non-empty. */
function userToRegister({ type, data }: WebhookEvent): string | undefined {
  const id = EventUser.safeParse(data).data?.id;
  if (type !== 'user.created' || id === undefined || id === null || id === '') return undefined;
  const identityProviderUserId = IdentityProviderUserId.safeParse(id);
  if (!identityProviderUserId.success) throw new HttpError(400, INVALID_EVENT);
  return identityProviderUserId.data;
}

/**
 * Verifies a delivery, registers the user that a `user.created` event announces, and acknowledges (contract 4.2, 6.1).
 *
 * `payload` must be the exact text of the request body. Deliveries may come late, repeated and in any order: a
 * registration that exists is left as it is. Throws HttpError 400 for an absent body, a bad signature (Standard
 * Webhooks, also under the svix names) or a verified body that is no event; a database failure passes through, so
 * that the sender delivers again.
 */
export async function receiveWebhook(payload: string, headers: Headers): Promise<Acknowledgment> {
  if (payload === '') throw new HttpError(400, 'Missing body');
  const verified = await step(
    'verify webhook',
    async () => isVerified(payload, headers),
    (valid) => (valid ? 'verified' : 'refused'),
  );
  if (!verified) throw new HttpError(400, INVALID_SIGNATURE);
  const said = parseJson(payload);
  const event = WebhookEvent.safeParse(said);
  if (!event.success) throw new HttpError(400, INVALID_EVENT);
  const { type } = event.data;
  noteFacts({ eventType: type.slice(0, 64) });
  const identityProviderUserId = userToRegister(event.data);
  if (identityProviderUserId !== undefined) {
    const { created } = await registerByIdentityProviderUserId(identityProviderUserId);
    noteFacts({ registered: created ? 'created' : 'existing' });
  }
  const time = EventTime.safeParse(said);
  if (time.success) globalThis.telemetry?.eventHandled(time.data.timestamp);
  return { received: true, eventType: type };
}
