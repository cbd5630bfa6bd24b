import * as z from 'zod/mini';
import { MAX_ID_LENGTH, UUID } from '../core/values';
import { text } from './text';

/*
 * Schemas of requests and responses. The TypeScript types are inferred from the schemas. The descriptions for readers of the API
 * documentation are in lib/api/document.ts, because a process that serves requests does not need the descriptions.
 */

/** The id of a user at the identity provider: 1 to 255 code points, case-sensitive and not trimmed. */
export const IdentityProviderUserId = text('identityProviderUserId', MAX_ID_LENGTH);

/** An internal user id. */
export const InternalUserId = z.string().check(z.regex(UUID));

/** Body of `POST /auth/v1/register` (docs/contract.md, 2.3). Ignores unknown fields, and does not change the id. */
export const RegisterUserRequest = z.object(
  { identityProviderUserId: IdentityProviderUserId },
  { error: 'The request body must be a JSON object' },
);

/** The link of an identity-provider user to an internal user (docs/contract.md, 4.1). `POST /auth/v1/register` returns it. */
export const UserLink = z.object({
  userId: InternalUserId,
  identityProviderUserId: IdentityProviderUserId,
});
export type UserLink = Readonly<z.infer<typeof UserLink>>;

/** The authenticated user of a request. The guard in lib/guard.ts passes this object to the route (docs/contract.md, 2.2). */
export const AuthenticatedContext = z.object({
  isAuthenticated: z.literal(true),
  userId: InternalUserId,
  identityProviderUserId: IdentityProviderUserId,
});
export type AuthenticatedContext = Readonly<z.infer<typeof AuthenticatedContext>>;

/**
 * A verified webhook event (docs/contract.md, 2.4). lib/webhook.ts parses the optional `timestamp` of the event separately,
 * because an event with an invalid `timestamp` is still valid.
 */
export const WebhookEvent = z.object({ type: z.string(), data: z.optional(z.unknown()) });
export type WebhookEvent = Readonly<z.infer<typeof WebhookEvent>>;

/** Body of the 200 response to a webhook (docs/contract.md, 2.5). */
export const Acknowledgment = z.object({ received: z.literal(true), eventType: z.string() });
export type Acknowledgment = Readonly<z.infer<typeof Acknowledgment>>;

/** Body of an error response (docs/contract.md, 2.6). Exceptions: NotReady, and the 405 that Next.js sends without a body. */
export const ErrorBody = z.object({ message: z.string() });
export type ErrorBody = Readonly<z.infer<typeof ErrorBody>>;

/** Body of the 200 response to `GET /health/alive`. */
export const Alive = z.object({ status: z.literal('ok') });

/** Body of `GET /health/ready` if the process can serve requests. `degraded` means that the cache does not respond. */
export const Ready = z.object({ status: z.literal(['ok', 'degraded']) });
export type Ready = Readonly<z.infer<typeof Ready>>;

/** Body of `GET /health/ready` if the process cannot serve requests. */
export const NotReady = z.object({
  errors: z.union([
    z.object({ database: z.literal('unavailable') }),
    z.object({ process: z.literal('stopping') }),
  ]),
});
export type NotReady = Readonly<z.infer<typeof NotReady>>;
