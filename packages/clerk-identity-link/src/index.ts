import type { WebhookEvent } from '@clerk/backend';
import { HttpError } from '../../../lib/core/error';
import { createLink } from '../../../lib/core/link';
import { createRoute } from '../../../lib/core/route';
import {
  createReceiveWebhook,
  type Delivery,
  type EventHandlers,
  limitWebhookBody,
} from '../../../lib/core/webhook';
import {
  type ClerkClient,
  type Configuration,
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

/** The functions of a link. `registerTenant` links a Clerk organization like `register`. */
export interface Core extends Pick<Surroundings, 'registerTenant'> {
  readonly tables: Tables;
  readonly options: CoreOptions;
  /** Links a Clerk user exactly once. Returns undefined for a user whom Clerk does not have. `created` is true in one call. */
  register(clerkUserId: string): Promise<{ userId: string; created: boolean } | undefined>;
  /** Creates the route of a webhook. It verifies each delivery, registers the user of `user.created`, and runs your handler. */
  webhook(handlers?: WebhookHandlers): (request: Request) => Promise<Response>;
}

const log: OnError = (error, request) => console.error(`${request}:`, error);

/** Creates a link over tables, or over those of another link with its options, and the functions of it that need no framework. */
export function start(
  given: Tables | Core,
  { clerk: ownClerk, headers }: Pick<Surroundings, 'clerk' | 'headers'>,
  own: CoreOptions,
) {
  const { tables, options: shared }: Pick<Core, 'tables' | 'options'> =
    'tables' in given ? given : { tables: given, options: {} };
  const options: CoreOptions = { clerk: own.clerk ?? shared.clerk, onError: own.onError ?? shared.onError };
  const onError: OnError = (error, request) => {
    try {
      (options.onError ?? log)(error, request);
    } catch (failure) {
      log(failure, 'onError');
    }
  };
  async function registerTenant(organizationId: string) {
    const { id: tenantId, created } = await link.register('tenant', organizationId);
    return tenantId === undefined ? undefined : { tenantId, created };
  }
  const clerk = async () => options.clerk ?? ownClerk();
  const configuration: Configuration = { tables, clerk, headers, registerTenant, onError };
  const link = createLink({
    store: storeOf(configuration),
    observer: {
      handled: ({ method, route, status, error }) => status === 500 && onError(error, `${method} ${route}`),
    },
  });
  const route = createRoute<Request>(link.observer);
  created.publish(configuration);
  const core: Core = {
    tables,
    options,
    registerTenant,
    async register(clerkUserId) {
      const { id: userId, created } = await link.register('user', clerkUserId);
      return userId === undefined ? undefined : { userId, created };
    },
    webhook(handlers: EventHandlers = {}) {
      const handle = route(async (request) => {
        const secrets = signingSecrets();
        if (secrets.length === 0) throw new Error('Set CLERK_WEBHOOK_SIGNING_SECRET.');
        const body = await limitWebhookBody(request).text();
        return Response.json(await createReceiveWebhook(link)(body, request.headers, secrets, handlers));
      });
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
export const identityLink = (given: Tables | Core, options: CoreOptions = {}): Core =>
  start(given, { headers: async () => undefined, clerk: clerkFromEnvironment }, options).core;
