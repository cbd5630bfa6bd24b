import * as z from 'zod/mini';
import { TransientError } from '../concurrency/retry';
import { parseEnvironmentSubset, variables } from '../env';
import { parseJson } from '../http/body';

/** A user of the provider. This service does not read names or e-mail addresses. */
export interface ProviderUser {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** Selects a page of the provider's users, which are sorted by creation time. */
export interface ProviderPage {
  /** Lower limit of the creation time in milliseconds since the epoch, exclusive. */
  readonly createdAfter?: number | undefined;
  readonly offset: number;
  readonly limit: number;
}

/** Maximum number of users in one response. */
export const MAX_USERS = 500;
/** Maximum number of ids in one request. */
const MAX_IDS = 100;
/** Maximum length of a query string, in characters. Servers reject URLs that are much longer. */
const MAX_QUERY_LENGTH = 6_000;

const API_URL = 'https://api.clerk.com';
/** Version of the Backend API that the installed version of Clerk's SDK (@clerk/backend) requests. */
const API_VERSION = '2026-05-12';
const TIMEOUT_MS = 20_000;
/** Pause after a 429 without a valid `retry-after`. */
const DEFAULT_PAUSE_SECONDS = 10;

const Users = z.array(
  z.pipe(
    z.object({ id: z.string(), created_at: z.number() }),
    z.transform(({ id, created_at }): ProviderUser => ({ id, createdAt: created_at })),
  ),
);
const UsersWithExternalId = z.array(
  z.pipe(
    z.object({ id: z.string(), created_at: z.number(), external_id: z.nullish(z.string()) }),
    z.transform(({ id, created_at, external_id = null }) => ({
      id,
      createdAt: created_at,
      externalId: external_id,
    })),
  ),
);
const Count = z.object({ total_count: z.number() });
const Failure = z.object({ errors: z.array(z.object({ code: z.string().check(z.regex(/^\w{1,60}$/)) })) });

/** Returns the error code of a response in parentheses, or an empty string if there is none. */
function codeOf(body: unknown): string {
  const [error] = Failure.safeParse(body).data?.errors ?? [];
  return error ? ` (${error.code})` : '';
}

/**
 * Sends a GET request to the Backend API and parses the response. Times out after 20 s by default.
 *
 * Throws a TransientError for a timeout, a network error, or the status 408, 429 or 5xx. Throws an Error for any other status
 * except 200, and for a body that does not match the schema. Does not use the SDK. To list users, the SDK would also send a
 * request that counts them, and parse all their fields. It has no timeout.
 */
async function backendApiGet<T>(
  schema: z.ZodMiniType<T>,
  path: string,
  query: URLSearchParams,
  milliseconds = TIMEOUT_MS,
): Promise<T> {
  const { IDP_SECRET_KEY, CLERK_API_URL = API_URL } = parseEnvironmentSubset(
    z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true }),
  );
  const noResponse = () => new TransientError('the identity provider does not respond');
  const response = await fetch(`${CLERK_API_URL.replace(/\/$/, '')}/v1/${path}?${query}`, {
    headers: { authorization: `Bearer ${IDP_SECRET_KEY}`, 'clerk-api-version': API_VERSION },
    redirect: 'error',
    signal: AbortSignal.timeout(milliseconds),
  }).catch(() => Promise.reject(noResponse()));
  const { status } = response;
  const text = await response.text().catch(() => Promise.reject(noResponse()));
  if (status === 429) {
    const seconds = Number(response.headers.get('retry-after') ?? DEFAULT_PAUSE_SECONDS);
    throw new TransientError(
      'the identity provider limits the rate of requests',
      Number.isFinite(seconds) ? seconds : DEFAULT_PAUSE_SECONDS,
    );
  }
  if (status >= 500 || status === 408)
    throw new TransientError(`the identity provider responds with status ${status}`);
  const body = parseJson(text);
  if (status === 401) throw new Error('The identity provider rejects IDP_SECRET_KEY');
  // The key itself is valid. A firewall, or a setting of the instance, forbids the request.
  if (status === 403)
    throw new Error(`The identity provider forbids this request with status 403${codeOf(body)}`);
  if (status !== 200) throw new Error(`The identity provider responds with status ${status}${codeOf(body)}`);
  const parsed = schema.safeParse(body);
  if (!parsed.success) throw new Error('The identity provider returns an unexpected response');
  return parsed.data;
}

const pageQuery = ({ createdAfter, offset, limit }: ProviderPage) =>
  new URLSearchParams({
    order_by: '+created_at',
    limit: String(limit),
    ...(offset === 0 ? {} : { offset: String(offset) }),
    ...(createdAfter === undefined ? {} : { created_at_after: String(createdAfter) }),
  });

/** Returns a page of the provider's users, in the order of their creation. Throws the errors of `backendApiGet`. */
export const listUsers = (page: ProviderPage): Promise<ProviderUser[]> =>
  backendApiGet(Users, 'users', pageQuery(page));

/** Returns the same users as `listUsers`. Adds the `external_id` of each user, an id that the team can set at the provider. */
export const listUsersWithExternalId = (page: ProviderPage) =>
  backendApiGet(UsersWithExternalId, 'users', pageQuery(page));

/** Returns the number of the provider's users. Throws the errors of `backendApiGet`. */
export async function countUsers(): Promise<number> {
  return (await backendApiGet(Count, 'users/count', new URLSearchParams())).total_count;
}

/** If an id in the query starts with `-`, the API excludes the user with that id. A `+` before each id prevents this. */
const idsQuery = (ids: readonly string[]) =>
  new URLSearchParams([['limit', String(MAX_IDS)], ...ids.map((id) => ['user_id', `+${id}`])]);

/**
 * Returns the provider's users with these ids. Omits ids that do not exist at the provider. Splits the ids into several
 * requests if they exceed `MAX_IDS` or `MAX_QUERY_LENGTH`. Throws the errors of `backendApiGet`.
 */
export async function listUsersById(ids: readonly string[]): Promise<ProviderUser[]> {
  if (ids.length === 0) return [];
  const half = Math.ceil(ids.length / 2);
  if (ids.length > MAX_IDS || (ids.length > 1 && idsQuery(ids).toString().length > MAX_QUERY_LENGTH))
    return [...(await listUsersById(ids.slice(0, half))), ...(await listUsersById(ids.slice(half)))];
  return backendApiGet(Users, 'users', idsQuery(ids));
}
