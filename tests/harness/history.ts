import { z } from 'zod';
import type { ParsedResponse } from './requests';
import type { TestService } from './service';

export const ENTRY_POINTS = ['guard', 'register', 'webhook'] as const;

/** A request of a client for a user, and the response. Times are values of `performance.now()`. */
export interface Call {
  readonly identityProviderUserId: string;
  readonly entryPoint: (typeof ENTRY_POINTS)[number];
  readonly sentAt: number;
  readonly endedAt: number;
  /** Undefined if there was no response. */
  readonly status: number | undefined;
  /** Internal id in the response. The response to a webhook does not contain an internal id. */
  readonly userId: string | undefined;
}

/** Internal ids of the rows of each user. The key is the `identityProviderUserId` of the user. */
export type Rows = ReadonlyMap<string, readonly string[]>;

const Linked = z.object({ userId: z.string() });

/** Sends a request and returns the call and the response. If the request fails, the call has no status. */
export async function call(
  identityProviderUserId: string,
  entryPoint: Call['entryPoint'],
  send: () => Promise<ParsedResponse>,
): Promise<{ readonly call: Call; readonly response: ParsedResponse | undefined }> {
  const sentAt = performance.now();
  const response = await send().catch(() => undefined);
  const userId = Linked.safeParse(response?.body).data?.userId;
  const endedAt = performance.now();
  return {
    call: { identityProviderUserId, entryPoint, sentAt, endedAt, status: response?.status, userId },
    response,
  };
}

/** Reads the rows of all users. */
export async function readRows({ database }: Pick<TestService, 'database'>): Promise<Rows> {
  const { rows } = await database.pool.query<{ id: string; idp: string }>(
    'SELECT id, identity_provider_user_id AS idp FROM users',
  );
  const rowsOf = new Map<string, string[]>();
  for (const { id, idp } of rows) rowsOf.set(idp, [...(rowsOf.get(idp) ?? []), id]);
  return rowsOf;
}

const succeeded = ({ status }: Call) => status !== undefined && status < 300;
/** A call without a response or with a server error may have created the user, or may create the user later. */
const isUncertain = ({ status }: Call) => status === undefined || status >= 500;

/** Returns the reason why the calls of one user are not linearizable, or undefined if they are. */
function violation(calls: readonly Call[], rows: readonly string[], before: string | undefined) {
  const successes = calls.filter(succeeded);
  const created = successes.filter(({ status }) => status === 201);
  const ids = new Set([...calls, { userId: before }].flatMap(({ userId }) => userId ?? []));
  for (const id of rows) ids.add(id);
  if (rows.length > 1) return 'has several rows';
  if (ids.size > 1) return 'has several internal ids';
  if (rows.length === 0 && (successes.length > 0 || before !== undefined)) return 'has no row';
  if (created.length > (before === undefined ? 1 : 0)) return 'was created twice';
  if (rows.length === 0 || before !== undefined) return undefined;
  // Calls that can have created the user. A register call with status 200 is excluded, because it found the user.
  const creators =
    created.length > 0
      ? created
      : calls.filter((each) => isUncertain(each) || (succeeded(each) && each.entryPoint !== 'register'));
  const firstSentAt = Math.min(...creators.map(({ sentAt }) => sentAt));
  if (successes.some(({ endedAt }) => endedAt < firstSentAt))
    return 'was found before any call could have created it';
  return creators.length === 0 ? 'has a row that no call created' : undefined;
}

/**
 * Checks that a history of calls is linearizable. This means that a service could give the same responses if it ran only one
 * call at a time, each at a moment between its request and its response. In such a service, the first call for a user creates
 * the internal id, and every other call finds it. A register call returns 201 if it creates the id, and 200 otherwise. A call
 * without a response or with a 5xx may have taken effect at any time after its request, or never.
 *
 * `rows` contains the rows after all calls, and `before` contains the rows before the first call. Returns a sentence for each
 * user whose calls are not linearizable.
 */
export function checkHistory(calls: readonly Call[], rows: Rows, before: Rows = new Map()): string[] {
  const callsOf = new Map<string, Call[]>();
  for (const each of calls) {
    const others = callsOf.get(each.identityProviderUserId);
    if (others) others.push(each);
    else callsOf.set(each.identityProviderUserId, [each]);
  }
  return [...callsOf].flatMap(([user, callsOfUser]) => {
    const found = violation(callsOfUser, rows.get(user) ?? [], before.get(user)?.[0]);
    return found === undefined ? [] : [`${user} ${found}`];
  });
}

/** Returns the line that the commands in tools/endurance print about a history. */
export const describeHistory = (calls: number, violations: readonly string[]): string =>
  violations.length === 0
    ? `History of ${calls} calls: linearizable.`
    : `History of ${calls} calls: not linearizable. ${violations.slice(0, 5).join('. ')}.`;
