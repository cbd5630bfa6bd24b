import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Call, checkHistory, ENTRY_POINTS } from '../harness/history';

// A history is a list of calls for one user. The calls may overlap. Each call has the time of its request and the time of its
// response or failure. checkHistory() reports which rules of the service a history violates. The first test compares
// checkHistory() with a simpler and slower check: some order of the calls must explain all responses and the rows in the
// database.
const USER = 'user_1';
const rowsOf = (ids: readonly string[]) => new Map([[USER, ids]]);

/** Returns every order of the calls in which each call comes after the calls that ended before its request. */
function orders(calls: readonly Call[]): Call[][] {
  if (calls.length === 0) return [[]];
  return calls.flatMap((first, index) => {
    const others = calls.filter((_, position) => position !== index);
    if (others.some(({ endedAt }) => endedAt < first.sentAt)) return [];
    return orders(others).map((rest) => [first, ...rest]);
  });
}

function subsets([first, ...rest]: readonly Call[]): Call[][] {
  if (first === undefined) return [[]];
  return subsets(rest).flatMap((set) => [set, [first, ...set]]);
}

/**
 * Simulates calls one after the other. `before` is the internal id of the user before the calls. Returns the ids of the rows,
 * or undefined if a response differs from the simulated response.
 */
function run(calls: readonly Call[], before: string | undefined): string[] | undefined {
  let linked: string | undefined = before;
  for (const { entryPoint, status, userId } of calls) {
    const isNew = linked === undefined;
    // The first call creates the row if there is none. If the response to this call contains no id, the row has the first id
    // that another response contains. If no response contains an id, any id fits.
    linked ??= userId ?? calls.find((each) => each.userId !== undefined)?.userId ?? 'any';
    const isUncertain = status === undefined || status >= 500;
    if (!isUncertain && userId !== undefined && userId !== linked) return undefined;
    if (!isUncertain && status !== (entryPoint === 'register' && isNew ? 201 : 200)) return undefined;
  }
  return linked === undefined ? [] : [linked];
}

/**
 * Returns true if some order of the calls explains the responses and the rows. Ignores calls with a 4xx, because they have no
 * effect. A call without a response or with a 5xx is uncertain: it may take effect at any time after its request, or never.
 */
function isLinearizable(calls: readonly Call[], rows: readonly string[], before: string | undefined) {
  const isUncertain = ({ status }: Call) => status === undefined || status >= 500;
  const certain = calls.filter(({ status }) => status !== undefined && status < 300);
  const late = calls.filter(isUncertain).map((call) => ({ ...call, endedAt: Number.POSITIVE_INFINITY }));
  return subsets(late)
    .flatMap((effective) => orders([...certain, ...effective]))
    .some((order) => {
      const ids = run(order, before);
      if (ids === undefined || ids.length !== rows.length) return false;
      return ids[0] === 'any' || ids[0] === rows[0];
    });
}

type Outcome = Pick<Call, 'entryPoint' | 'status' | 'userId'>;
const outcome = fc.oneof(
  fc.constantFrom('a', 'b').map((userId): Outcome => ({ entryPoint: 'guard', status: 200, userId })),
  fc
    .tuple(fc.constantFrom(200, 201), fc.constantFrom('a', 'a', 'b'))
    .map(([status, userId]): Outcome => ({ entryPoint: 'register', status, userId })),
  fc.constant<Outcome>({ entryPoint: 'webhook', status: 200, userId: undefined }),
  fc
    .tuple(fc.constantFrom(...ENTRY_POINTS), fc.constantFrom(500, 400, undefined))
    .map(([entryPoint, status]): Outcome => ({ entryPoint, status, userId: undefined })),
);

const someCall = fc.record({ outcome, sentAt: fc.nat(8), duration: fc.nat(4) }).map(
  ({ outcome: result, sentAt, duration }): Call => ({
    identityProviderUserId: USER,
    ...result,
    sentAt,
    endedAt: sentAt + duration,
  }),
);

test('checkHistory() accepts a history if and only if some order of its calls explains the responses and the rows', () => {
  let accepted = 0;
  fc.assert(
    fc.property(
      fc.array(someCall, { minLength: 1, maxLength: 5 }),
      fc.constantFrom<string[]>([], ['a'], ['a'], ['b'], ['a', 'b']),
      fc.constantFrom(undefined, undefined, undefined, 'a'),
      (calls, rows, before) => {
        const violations = checkHistory(calls, rowsOf(rows), rowsOf(before === undefined ? [] : [before]));
        const isAccepted = rows.length < 2 && isLinearizable(calls, rows, before);
        accepted += isAccepted ? 1 : 0;
        expect(violations.length === 0, JSON.stringify({ calls, rows, before, violations })).toBe(isAccepted);
      },
    ),
    { numRuns: 2_000 },
  );
  expect(accepted).toBeGreaterThan(50);
});

const call = (
  entryPoint: Call['entryPoint'],
  status: number,
  userId: string | undefined,
  sentAt = 0,
): Call => ({
  identityProviderUserId: USER,
  entryPoint,
  status,
  userId,
  sentAt,
  endedAt: sentAt + 1,
});
const HISTORY = [
  call('register', 201, 'a'),
  call('register', 200, 'a', 2),
  call('guard', 200, 'a', 4),
  call('webhook', 200, undefined, 6),
];

test('checkHistory() accepts a correct history of a new user, and names the violation if one call or the rows are wrong', () => {
  expect(checkHistory(HISTORY, rowsOf(['a']))).toEqual([]);
  const changed = (index: number, change: Partial<Call>) =>
    checkHistory(
      HISTORY.with(index, { ...(HISTORY[index] ?? call('guard', 200, 'a')), ...change }),
      rowsOf(['a']),
    );
  expect(changed(2, { userId: 'b' })).toEqual(['user_1 has several internal ids']);
  expect(changed(1, { status: 201 })).toEqual(['user_1 was created twice']);
  expect(changed(0, { sentAt: 9, endedAt: 10 })).toEqual([
    'user_1 was found before any call could have created it',
  ]);
  expect(changed(0, { status: 400 })).toEqual(['user_1 was found before any call could have created it']);
  expect(checkHistory(HISTORY, rowsOf(['b']))).toEqual(['user_1 has several internal ids']);
  expect(checkHistory(HISTORY, rowsOf(['a', 'a']))).toEqual(['user_1 has several rows']);
  expect(checkHistory(HISTORY, rowsOf([]))).toEqual(['user_1 has no row']);
  expect(checkHistory(HISTORY, rowsOf(['a']), rowsOf(['a']))).toEqual(['user_1 was created twice']);
  expect(checkHistory([call('guard', 400, undefined)], rowsOf(['a']))).toEqual([
    'user_1 has a row that no call created',
  ]);
});
