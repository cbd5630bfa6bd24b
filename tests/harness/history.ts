import { z } from 'zod';
import type { ParsedResponse } from './requests';
import type { ServiceAccess } from './service';

export const ENTRY_POINTS = ['guard', 'register', 'webhook'] as const;

/** A request of a client for a user, and the response. */
export interface Call {
  readonly identityProviderUserId: string;
  readonly entryPoint: (typeof ENTRY_POINTS)[number];
  /** Undefined if there was no response. */
  readonly status: number | undefined;
  /** Internal id in the response. The response to a webhook does not contain an internal id. */
  readonly userId: string | undefined;
}

/** Internal ids of the rows of each user. The key is the `identityProviderUserId` of the user. */
type Rows = ReadonlyMap<string, readonly string[]>;

const Linked = z.object({ userId: z.string() });

/** Sends a request and returns the call. If the request fails, the call has no status. */
export async function call(
  identityProviderUserId: string,
  entryPoint: Call['entryPoint'],
  send: () => Promise<ParsedResponse>,
): Promise<Call> {
  const response = await send().catch(() => undefined);
  const userId = Linked.safeParse(response?.body).data?.userId;
  return { identityProviderUserId, entryPoint, status: response?.status, userId };
}

/** Reads the rows of all users. */
export async function readRows({ database }: Pick<ServiceAccess, 'database'>): Promise<Rows> {
  const { rows } = await database.pool.query<{ idp: string; ids: string[] }>(
    'SELECT identity_provider_user_id AS idp, array_agg(id::text) AS ids FROM users GROUP BY 1',
  );
  return new Map(rows.map(({ idp, ids }) => [idp, ids]));
}

/**
 * Checks the calls and rows of users whom no operator has forgotten: a user has one internal id and at most one row, at most one
 * call reports 201, and the user of a call with a 2xx has a row. Returns a sentence for each user who breaks a guarantee.
 */
export function checkHistory(calls: readonly Call[], rows: Rows): string[] {
  const users = new Map<string, Call[]>();
  for (const each of calls)
    users.set(each.identityProviderUserId, [...(users.get(each.identityProviderUserId) ?? []), each]);
  return [...users].flatMap(([user, ofUser]) => {
    const linked = rows.get(user) ?? [];
    const ids = new Set([...linked, ...ofUser.flatMap(({ userId }) => userId ?? [])]);
    if (linked.length > 1) return `${user} has several rows`;
    if (ids.size > 1) return `${user} has several internal ids`;
    if (ofUser.filter(({ status }) => status === 201).length > 1) return `${user} was created twice`;
    const isAcknowledged = ofUser.some(({ status = 500 }) => status < 300);
    return isAcknowledged && linked.length === 0 ? `${user} was acknowledged, but has no row` : [];
  });
}
