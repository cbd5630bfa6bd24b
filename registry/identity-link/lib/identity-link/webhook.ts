import { verifyWebhook } from '@clerk/nextjs/webhooks';
import { NextRequest } from 'next/server';
import * as z from 'zod/mini';
import { HttpError, limitBody, text } from './http';
import { registerByIdentityProviderUserId } from './link';

const INVALID_SIGNATURE = 'Invalid webhook signature';
const INVALID_EVENT = 'Invalid webhook event';
const UserCreated = z.object({ id: z.optional(z.union([z.literal(''), text('id', 255)])) });

/** Handlers of verified events by type. They must be idempotent, because events arrive repeatedly and in any order. */
const handlers: Readonly<Record<string, (data: unknown) => Promise<unknown>>> = {
  'user.created': async (data) => {
    const user = UserCreated.safeParse(data);
    if (!user.success) throw new HttpError(400, INVALID_EVENT);
    if (user.data.id) await registerByIdentityProviderUserId(user.data.id);
  },
};

/** Verifies a delivery over its exact bytes and runs its handler. Passes database errors through. */
export async function receiveWebhook(request: Request): Promise<object> {
  const signingSecret = process.env['CLERK_WEBHOOK_SIGNING_SECRET'];
  if (!signingSecret) throw new Error('CLERK_WEBHOOK_SIGNING_SECRET is missing.');
  const body = await limitBody(request, { maxBytes: 1024 * 1024, notUtf8: INVALID_SIGNATURE }).text();
  if (body === '') throw new HttpError(400, 'Missing body');
  const delivery = new NextRequest(request.url, { method: 'POST', headers: request.headers, body });
  const { type, data } = await verifyWebhook(delivery, { signingSecret }).catch((error: Error) => {
    console.warn('identity-link: webhook rejected:', error.message);
    throw new HttpError(400, INVALID_SIGNATURE);
  });
  if (typeof type !== 'string') throw new HttpError(400, INVALID_EVENT);
  if (Object.hasOwn(handlers, type)) await handlers[type]?.(data);
  return { received: true, eventType: type };
}
