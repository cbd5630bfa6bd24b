import type { WebhookEvent } from '@clerk/backend/webhooks';
import { HttpError } from '../../../lib/core/error';
import { createLink, type Link } from '../../../lib/core/link';
import { createRoute } from '../../../lib/core/route';
import {
  createReceiveWebhook,
  type Delivery,
  type EventHandlers,
  limitWebhookBody,
} from '../../../lib/core/webhook';
import {
  type ClerkClient,
  created,
  type LinkTable,
  type OnError,
  type Surroundings,
  signingSecrets,
  type Tables,
} from './configuration';
import { storeOf } from './store';

export type { ClerkClient, Delivery, LinkTable, OnError, Surroundings, Tables };
export { HttpError };

/** The `data` of the events of a type. Distributes over the events, because the `type` of one may be a union. */
type EventData<T, E = WebhookEvent> = E extends { type: infer U; data: infer D }
  ? T extends U
    ? D
    : never
  : never;

/** Handlers of webhook events by type. Deliveries may arrive repeatedly and in any order. An HttpError sets the status. */
export type WebhookHandlers = {
  readonly [T in WebhookEvent['type']]?: (data: EventData<T>, delivery: Delivery) => Promise<unknown>;
};

export interface CoreOptions {
  /** Reads the user of a new row. Default: a client with CLERK_SECRET_KEY. */
  readonly clerk?: ClerkClient | undefined;
  readonly onError?: OnError | undefined;
}

export interface Core {
  readonly tables: Tables;
  readonly options: CoreOptions;
  /** Links a Clerk user exactly once. Returns undefined for a user whom Clerk does not have. `created` is true in one call. */
  register(clerkUserId: string): Promise<{ userId: string; created: boolean } | undefined>;
  /** Links a Clerk organization like `register`. */
  registerTenant(organizationId: string): Promise<{ tenantId: string; created: boolean } | undefined>;
  /** Creates the route of a webhook. It verifies each delivery, registers the user of `user.created`, and runs your handler. */
  webhook(handlers?: WebhookHandlers): (request: Request) => Promise<Response>;
}

async function receive(request: Request, link: Link, handlers: EventHandlers) {
  const secrets = signingSecrets();
  if (secrets.length === 0) throw new Error('Set CLERK_WEBHOOK_SIGNING_SECRET.');
  const body = await limitWebhookBody(request).text();
  return createReceiveWebhook(link)(body, request.headers, secrets, handlers);
}

const log: OnError = (error, request) => console.error(`${request}:`, error);

/** Creates a link over these tables, and the functions of it that need no framework. */
export function start(
  tables: Tables,
  { clerk, headers }: Pick<Surroundings, 'clerk' | 'headers'>,
  options: CoreOptions,
): { readonly link: Link; readonly core: Core } {
  const { onError = log } = options;
  const registerTenant: Core['registerTenant'] = async (organizationId) => {
    const { id: tenantId, created } = await link.register('tenant', organizationId);
    return tenantId === undefined ? undefined : { tenantId, created };
  };
  const surroundings: Surroundings = { clerk, headers, registerTenant, onError };
  const link = createLink({
    store: storeOf(tables, surroundings),
    observer: {
      handled({ method, route, status, error }) {
        if (status !== 500) return;
        try {
          onError(error, `${method} ${route}`);
        } catch (failure) {
          log(failure, 'onError');
        }
      },
    },
  });
  const route = createRoute<Request>(link.observer);
  created.publish({ ...surroundings, tables });
  const core: Core = {
    tables,
    options,
    registerTenant,
    async register(clerkUserId) {
      const { id: userId, created } = await link.register('user', clerkUserId);
      return userId === undefined ? undefined : { userId, created };
    },
    webhook(handlers: EventHandlers = {}) {
      const handle = route(async (request) => Response.json(await receive(request, link, handlers)));
      return async (request) => handle(request, { params: Promise.resolve({}) });
    },
  };
  return { link, core };
}

async function clerkFromEnvironment(): Promise<ClerkClient> {
  const { createClerkClient } = await import('@clerk/backend');
  const { CLERK_SECRET_KEY = '', CLERK_API_URL: apiUrl } = process.env;
  return createClerkClient({ secretKey: CLERK_SECRET_KEY, ...(apiUrl && { apiUrl }) });
}

/** Links users and organizations without Next.js. Without `clerk`, uses CLERK_SECRET_KEY to read the user of a new row. */
export const identityLink = (tables: Tables, options: CoreOptions = {}): Core =>
  start(
    tables,
    {
      headers: async () => undefined,
      clerk: async () => options.clerk ?? clerkFromEnvironment(),
    },
    options,
  ).core;
