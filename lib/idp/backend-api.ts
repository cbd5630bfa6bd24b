import * as z from 'zod/mini';
import { TransientError } from '../concurrency/retry';
import { parseEnvironmentSubset, variables } from '../env';
import { parseJson } from '../http/body';

/** Of a user at the identity provider, all that is ever read here: no name, no address. */
export interface ProviderUser {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
}

/** A part of the provider's users, the oldest first. */
export interface ProviderPage {
  /** Exclusive. */
  readonly createdAfter?: number | undefined;
  readonly offset: number;
  readonly limit: number;
}

/** The most that the provider lists at once, and the most ids that it takes. */
export const MAX_USERS = 500;
const MAX_IDS = 100;
/** Beyond that, servers refuse an address. */
const MAX_QUERY_LENGTH = 6_000;

/** Message of the error for a 401: the key belongs to no instance, or was revoked. */
export const SECRET_KEY_REJECTED = 'The identity provider refuses IDP_SECRET_KEY';
const API_URL = 'https://api.clerk.com';
/** As the pinned SDK sends it. */
const API_VERSION = '2026-05-12';
const TIMEOUT_MS = 20_000;

const Users = z.array(
  z.pipe(
    z.object({ id: z.string(), created_at: z.number() }),
    z.transform(({ id, created_at }): ProviderUser => ({ id, createdAt: created_at })),
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
 * One GET of the Backend API, which ends within 20 s unless told. A limit, a fault of the server or of the network is a TransientError;
 * what the provider refuses is an Error that says what it refused.
 *
 * Not by the SDK: that makes two calls for a page, one to count, reads the rest of every user, and takes no time-out.
 */
export async function backendApiGet<T>(
  schema: z.ZodMiniType<T>,
  path: string,
  query: URLSearchParams,
  milliseconds = TIMEOUT_MS,
): Promise<T> {
  const { IDP_SECRET_KEY, CLERK_API_URL = API_URL } = parseEnvironmentSubset(
    z.pick(variables, { IDP_SECRET_KEY: true, CLERK_API_URL: true }),
  );
  const unanswered = () => new TransientError('the identity provider does not answer');
  const response = await fetch(`${CLERK_API_URL.replace(/\/$/, '')}/v1/${path}?${query}`, {
    headers: { authorization: `Bearer ${IDP_SECRET_KEY}`, 'clerk-api-version': API_VERSION },
    redirect: 'error',
    signal: AbortSignal.timeout(milliseconds),
  }).catch(() => Promise.reject(unanswered()));
  const { status } = response;
  const text = await response.text().catch(() => Promise.reject(unanswered()));
  if (status === 429) {
    const seconds = Number(response.headers.get('retry-after') ?? 10);
    throw new TransientError(
      'the identity provider asks for a pause',
      Number.isFinite(seconds) ? seconds : 10,
    );
  }
  if (status >= 500 || status === 408)
    throw new TransientError(`the identity provider answers with status ${status}`);
  const body = parseJson(text);
  if (status === 401) throw new Error(SECRET_KEY_REJECTED);
  // The key itself is valid. A firewall, or a setting of the instance, forbids the request.
  if (status === 403)
    throw new Error(`The identity provider forbids this request with status 403${codeOf(body)}`);
  if (status !== 200) throw new Error(`The identity provider answers with status ${status}${codeOf(body)}`);
  const parsed = schema.safeParse(body);
  if (!parsed.success) throw new Error('The identity provider answers something else than was asked for');
  return parsed.data;
}

/** One page of the provider's users, the oldest first; throws as `backendApiGet` does. */
export function listUsers({ createdAfter, offset, limit }: ProviderPage): Promise<ProviderUser[]> {
  const query = new URLSearchParams({
    order_by: '+created_at',
    limit: String(limit),
    ...(offset === 0 ? {} : { offset: String(offset) }),
    ...(createdAfter === undefined ? {} : { created_at_after: String(createdAfter) }),
  });
  return backendApiGet(Users, 'users', query);
}

/** How many users the provider has; throws as `backendApiGet` does. */
export async function countUsers(): Promise<number> {
  return (await backendApiGet(Count, 'users/count', new URLSearchParams())).total_count;
}

/** With a sign in front, for one that stands first in an id would be taken for "all but this". */
const asked = (ids: readonly string[]) =>
  new URLSearchParams([['limit', String(MAX_IDS)], ...ids.map((id) => ['user_id', `+${id}`])]);

/** Those of some ids that the provider knows, with as few calls as its bounds allow; throws as `backendApiGet` does. */
export async function listUsersById(ids: readonly string[]): Promise<ProviderUser[]> {
  if (ids.length === 0) return [];
  const half = Math.ceil(ids.length / 2);
  if (ids.length > MAX_IDS || (ids.length > 1 && asked(ids).toString().length > MAX_QUERY_LENGTH))
    return [...(await listUsersById(ids.slice(0, half))), ...(await listUsersById(ids.slice(half)))];
  return backendApiGet(Users, 'users', asked(ids));
}
