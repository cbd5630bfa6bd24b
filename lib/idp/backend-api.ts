import { type ClerkClient, createClerkClient } from '@clerk/backend';
import * as z from 'zod/mini';
import { parseEnvironmentSubset, variables } from '../base/env';
import { withTimeout } from '../base/timeout';
import { TransientError } from '../base/transient-error';

/** Maximum number of users in one response. */
export const MAX_USERS = 500;
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

const User = z.object({
  id: z.string(),
  /** Milliseconds since the epoch. */
  createdAt: z.number(),
  /** An id that the team can set at the provider. */
  externalId: z.nullish(z.string()),
  /** The user as a webhook sends it, with personal data. Only a replay reads it (lib/users/replay.ts). */
  raw: z.optional(z.unknown()),
});
const UserList = z.object({ data: z.array(User) });

/** A user of the provider. */
export type ProviderUser = z.infer<typeof User>;

/** Selects a page of the provider's users, which are sorted by creation time. */
export interface ProviderPage {
  /** Lower limit of the creation time in milliseconds since the epoch, exclusive. */
  readonly createdAfter?: number | undefined;
  readonly offset: number;
  readonly limit: number;
}

/**
 * Sends a request with the SDK. Stops waiting after 20 s, because the SDK has no timeout. Throws a TransientError for a timeout, a
 * network error, or the status 408, 429 or 5xx, and otherwise an Error.
 */
async function call<T>(request: (users: ClerkClient['users']) => Promise<T>): Promise<T> {
  const { IDP_SECRET_KEY: secretKey, CLERK_API_URL: apiUrl } = parseEnvironmentSubset(
    z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true }),
  );
  const { users } = createClerkClient({
    secretKey,
    ...(apiUrl === undefined ? {} : { apiUrl }),
    telemetry: { disabled: true },
  });
  return withTimeout(TIMEOUT_MS, request(users)).catch((error: unknown) => {
    throw convertError(error);
  });
}

/** Requests users. Throws the errors of `call`. */
async function listOf(query: Parameters<ClerkClient['users']['getUserList']>[0]): Promise<ProviderUser[]> {
  const parsed = UserList.safeParse(await call((users) => users.getUserList(query)));
  if (!parsed.success) throw new Error('The identity provider returns an unexpected response');
  return parsed.data.data;
}

/**
 * Sets the `external_id` of a user, or removes it if it is null. Returns the status if it is 404 or 422. Throws the other errors
 * of `call`.
 */
export const setExternalId = (id: string, externalId: string | null): Promise<404 | 422 | undefined> =>
  call((users) =>
    // The type of the SDK lacks null.
    users.updateUser(id, Object({ externalId })).then(
      () => undefined,
      (error: unknown) => {
        const status = Failure.safeParse(error).data?.status;
        if (status === 404 || status === 422) return status;
        throw error;
      },
    ),
  );

/** Returns a page of the provider's users, in the order of their creation. Throws the errors of `call`. */
export const listUsers = ({ createdAfter, offset, limit }: ProviderPage): Promise<ProviderUser[]> =>
  listOf({
    orderBy: '+created_at',
    limit,
    offset,
    ...(createdAfter === undefined ? {} : { createdAtAfter: createdAfter }),
  });

/**
 * Returns the provider's users with these ids. Omits ids that do not exist at the provider. Splits the ids into several
 * requests if there are more than 100 or if the query would be too long. Throws the errors of `call`.
 */
export async function listUsersById(ids: readonly string[]): Promise<ProviderUser[]> {
  if (ids.length === 0) return [];
  if (ids.length > MAX_IDS || (ids.length > 1 && encodeURIComponent(ids.join()).length > MAX_QUERY_LENGTH)) {
    const half = Math.ceil(ids.length / 2);
    return [...(await listUsersById(ids.slice(0, half))), ...(await listUsersById(ids.slice(half)))];
  }
  // The API excludes a user if the id in the query starts with `-`. The `+` prevents this.
  return listOf({ userId: ids.map((id) => `+${id}`), limit: MAX_IDS });
}
