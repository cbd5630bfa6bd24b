import * as z from 'zod/mini';
import { text } from './text';

/*
 * What comes in and what goes out: routes parse with these, answers have these types, and lib/api/document.ts describes
 * them. Their descriptions stand there: a process that serves requests has no use for them.
 */

/** The identity provider's id of a user: up to 255 characters, taken as it stands; no trimming, and case matters. */
export const IdentityProviderUserId = text('identityProviderUserId', 255);

/** An internal user id as the column returns it, also of a row that was imported. */
export const InternalUserId = z
  .string()
  .check(z.regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/));

/** Body of `POST /auth/v1/register` (contract 2.3). */
export const RegisterUserRequest = z.object(
  { identityProviderUserId: IdentityProviderUserId },
  'The request body must be a JSON object',
);

/** The link that `POST /auth/v1/register` made or found (contract 4.1). */
export const UserLink = z.object({
  userId: InternalUserId,
  identityProviderUserId: IdentityProviderUserId,
});
export type UserLink = Readonly<z.infer<typeof UserLink>>;

/** Who makes a request, once the guard has passed it (contract 2.2). */
export const AuthenticatedContext = z.object({
  isAuthenticated: z.literal(true),
  userId: InternalUserId,
  identityProviderUserId: IdentityProviderUserId,
});
export type AuthenticatedContext = Readonly<z.infer<typeof AuthenticatedContext>>;

/** What a verified event says as far as this service reads it (contract 2.4). */
export const WebhookEvent = z.object({ type: z.string(), data: z.optional(z.unknown()) });
export type WebhookEvent = Readonly<z.infer<typeof WebhookEvent>>;

/** The sender's 200 body (contract 2.5). */
export const Acknowledgment = z.object({ received: z.literal(true), eventType: z.string() });
export type Acknowledgment = Readonly<z.infer<typeof Acknowledgment>>;

/** Body of every answer that is no success (contract 2.6). */
export const ErrorBody = z.object({ message: z.string() });
export type ErrorBody = Readonly<z.infer<typeof ErrorBody>>;

/** The process answers. */
export const Alive = z.object({ status: z.literal('ok') });

/** Requests should be sent to this process; `degraded`: everything is answered, without the cache. */
export const Ready = z.object({ status: z.literal(['ok', 'degraded']) });
export type Ready = Readonly<z.infer<typeof Ready>>;

/** No requests should be sent to this process. */
export const NotReady = z.object({
  errors: z.union([
    z.object({ database: z.literal('unavailable') }),
    z.object({ process: z.literal('stopping') }),
  ]),
});
export type NotReady = Readonly<z.infer<typeof NotReady>>;
