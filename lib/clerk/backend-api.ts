import { type ClerkClient, createClerkClient } from '@clerk/backend';
import { createRemoteJWKSet, customFetch } from 'jose';
import * as z from 'zod/mini';
import { parseEnvironmentSubset } from '../base/env';
import { TransientError } from '../base/errors';
import { withTimeout } from '../core/async';
import type { Kind } from '../core/ports';
import { fieldsOf } from '../core/values';
import type { ProviderEntry, ProviderPage } from '../provider-port';
import { variables } from './variables';

/** Maximum number of ids in one request. */
const MAX_IDS = 100;
/** Maximum length of the ids in a query string. Servers reject URLs that are much longer. */
const MAX_QUERY_LENGTH = 6_000;
const TIMEOUT_MS = 20_000;
/** Pause after a 429 without a valid `retry-after`. */
const DEFAULT_PAUSE_SECONDS = 10;

const Failure = z.object({
  status: z.number(),
  retryAfter: z.optional(z.number()),
  errors: z.array(z.object({ code: z.string() })),
});

/** Converts an error of the SDK. The result contains no data of a user. */
function convertError(error: unknown): Error {
  const { data: failure } = Failure.safeParse(error);
  if (failure === undefined) return new TransientError('the identity provider does not respond');
  const { status, retryAfter = DEFAULT_PAUSE_SECONDS, errors } = failure;
  if (status === 429)
    return new TransientError('the identity provider limits the rate of requests', retryAfter);
  if (status >= 500 || status === 408)
    return new TransientError(`the identity provider responds with status ${status}`);
  if (status === 401) return new Error('The identity provider rejects IDP_SECRET_KEY');
  const [code] = errors.flatMap(({ code }) => (/^\w{1,60}$/.test(code) ? [` (${code})`] : []));
  return new Error(`The identity provider responds with status ${status}${code ?? ''}`);
}

const Entry = z.object({
  id: z.string(),
  createdAt: z.number(),
  externalId: z.nullish(z.string()),
  raw: z.optional(z.unknown()),
});
const List = z.object({ data: z.array(Entry) });

/**
 * Sends a request with the SDK. Stops waiting after 20 s, because the SDK has no timeout. Throws a TransientError for a timeout,
 * a network error, or the status 408, 429 or 5xx, and otherwise an Error.
 */
async function call<T>(request: (client: ClerkClient) => Promise<T>): Promise<T> {
  const { IDP_SECRET_KEY: secretKey, CLERK_API_URL: apiUrl } = parseEnvironmentSubset(
    z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true }),
  );
  const client = createClerkClient({
    secretKey,
    ...(apiUrl === undefined ? {} : { apiUrl }),
    telemetry: { disabled: true },
  });
  return withTimeout(TIMEOUT_MS, request(client)).catch((error: unknown) => {
    throw convertError(error);
  });
}

/** Requests users or organizations. Throws the errors of `call`. */
async function listOf(request: (client: ClerkClient) => Promise<unknown>): Promise<ProviderEntry[]> {
  const parsed = List.safeParse(await call(request));
  if (!parsed.success) throw new Error('The identity provider returns an unexpected response');
  return parsed.data.data;
}

/** Sets the `external_id` of a user, or removes it if it is null. Returns a status of 404 or 422, and throws other errors. */
export const setExternalId = (id: string, externalId: string | null): Promise<404 | 422 | undefined> =>
  call(({ users }) =>
    // The type of the SDK lacks null.
    users.updateUser(id, fieldsOf({ externalId })).then(
      () => undefined,
      (error: unknown) => {
        const status = Failure.safeParse(error).data?.status;
        if (status === 404 || status === 422) return status;
        throw error;
      },
    ),
  );

/** Returns a page of the provider's users or organizations, in the order of their creation. Throws the errors of `call`. */
export const listPage = (
  kind: Kind,
  { createdAfter, offset, limit }: ProviderPage,
): Promise<ProviderEntry[]> =>
  listOf(({ users, organizations }) => {
    const page = { orderBy: '+created_at', limit, offset } as const;
    if (kind === 'tenant') return organizations.getOrganizationList(page);
    return users.getUserList(createdAfter === undefined ? page : { ...page, createdAtAfter: createdAfter });
  });

/**
 * Returns the provider's users or organizations with these ids, and omits ids that it does not have. Sends several requests for
 * more than 100 ids or a long query. Throws the errors of `call`.
 */
export async function listById(kind: Kind, ids: readonly string[]): Promise<ProviderEntry[]> {
  if (ids.length === 0) return [];
  if (ids.length > MAX_IDS || (ids.length > 1 && encodeURIComponent(ids.join()).length > MAX_QUERY_LENGTH)) {
    const half = Math.ceil(ids.length / 2);
    return [...(await listById(kind, ids.slice(0, half))), ...(await listById(kind, ids.slice(half)))];
  }
  // The API excludes an entry if the id in the query starts with `-`. The `+` prevents this.
  const included = ids.map((id) => `+${id}`);
  return listOf(({ users, organizations }) =>
    kind === 'user'
      ? users.getUserList({ userId: included, limit: MAX_IDS })
      : organizations.getOrganizationList({ organizationId: included, limit: MAX_IDS }),
  );
}

const Payload = z.object({ directives: z.array(z.string()).check(z.minLength(1)) });

/** Exchanges a nonce for one or more cookies, each in the form of a `set-cookie` header. Throws the errors of `call`. */
export async function exchangeNonce(nonce: string): Promise<string[]> {
  return Payload.parse(await call(({ clients }) => clients.getHandshakePayload({ nonce }))).directives;
}

/** Finds the provider's public key of a token. Loads the keys every ten minutes, and for an unknown key at most every 30 s. */
export const findKey = createRemoteJWKSet(new URL('https://api.clerk.com/v1/jwks'), {
  // The SDK has the address and the secret key.
  [customFetch]: async () => Response.json(await call(({ jwks }) => jwks.getJwks())),
});
