import type { WebhookEvent } from '@clerk/backend/webhooks';
import { HttpError } from '#lib/http/error';
import { register } from '#lib/register';
import { type Delivery, type EventHandlers, limitWebhookBody, receiveWebhook } from '#lib/webhook';
import {
  type ClerkClient,
  type Configuration,
  configuration,
  configure,
  type LinkTable,
  type OnError,
  type Surroundings,
  type Tables,
} from './configuration';

export type { ClerkClient, Delivery, LinkTable, OnError, Surroundings, Tables };
export { HttpError };

/** Handlers of webhook events by type. Deliveries may arrive repeatedly and in any order. An HttpError sets the status. */
export type WebhookHandlers = {
  readonly [T in WebhookEvent['type']]?: (
    data: Extract<WebhookEvent, { type: T }>['data'],
    delivery: Delivery,
  ) => Promise<unknown>;
};

export interface Core {
  readonly tables: Tables;
  /** Links a Clerk user exactly once. Returns undefined for a user whom Clerk does not have. `created` is true in one call. */
  register(clerkUserId: string): Promise<{ userId: string; created: boolean } | undefined>;
  /** Links a Clerk organization like `register`. */
  registerTenant(organizationId: string): Promise<{ tenantId: string; created: boolean } | undefined>;
  /** Creates the route of a webhook. It verifies each delivery, registers the user of `user.created`, and runs your handler. */
  webhook(handlers?: WebhookHandlers): (request: Request) => Promise<Response>;
}

async function registerUser(clerkUserId: string) {
  const { id: userId, created } = await register('user', clerkUserId);
  return userId === undefined ? undefined : { userId, created };
}

async function registerTenant(organizationId: string) {
  const { id: tenantId, created } = await register('tenant', organizationId);
  return tenantId === undefined ? undefined : { tenantId, created };
}

async function receive(request: Request, handlers: EventHandlers) {
  const secrets = process.env['CLERK_WEBHOOK_SIGNING_SECRET'] ?? process.env['CLERK_WEBHOOK_SECRET'];
  if (!secrets?.trim()) throw new Error('Set CLERK_WEBHOOK_SIGNING_SECRET.');
  const body = await limitWebhookBody(request).text();
  return receiveWebhook(body, request.headers, secrets.trim().split(/\s+/), handlers);
}

const webhook =
  (handlers: EventHandlers = {}) =>
  (request: Request): Promise<Response> =>
    receive(request, handlers).then(
      (acknowledgment) => Response.json(acknowledgment),
      (error: unknown) => {
        if (error instanceof HttpError)
          return Response.json({ message: error.message }, { status: error.status });
        configuration().onError(error, `${request.method} ${new URL(request.url).pathname}`);
        return Response.json({ message: 'Internal Server Error' }, { status: 500 });
      },
    );

const log: OnError = (error, request) => console.error(`${request}:`, error);

/** Sets the configuration of this process, and returns the functions that need no framework. */
export function start({
  onError = log,
  ...given
}: Omit<Configuration, 'onError' | 'registerTenant'> & { readonly onError?: OnError | undefined }): Core {
  configure({ ...given, onError, registerTenant });
  return { tables: given.tables, register: registerUser, registerTenant, webhook };
}

async function clerkFromEnvironment(): Promise<ClerkClient> {
  const { createClerkClient } = await import('@clerk/backend');
  const { CLERK_SECRET_KEY = '', CLERK_API_URL: apiUrl } = process.env;
  return createClerkClient({ secretKey: CLERK_SECRET_KEY, ...(apiUrl && { apiUrl }) });
}

/** Links users and organizations without Next.js. Without `clerk`, uses CLERK_SECRET_KEY to read the user of a new row. */
export const identityLink = (
  tables: Tables,
  { clerk, onError }: { readonly clerk?: ClerkClient; readonly onError?: OnError } = {},
): Core =>
  start({
    tables,
    onError,
    headers: async () => undefined,
    clerk: async () => clerk ?? clerkFromEnvironment(),
  });
