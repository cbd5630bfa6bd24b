import { expect, test } from 'vitest';
import { type Call, checkHistory } from '../harness/history';

const call = (entryPoint: Call['entryPoint'], status: number | undefined, userId?: string): Call => ({
  identityProviderUserId: 'user_1',
  entryPoint,
  status,
  userId,
});
const HISTORY = [
  call('register', 201, 'a'),
  call('guard', 200, 'a'),
  call('webhook', 200),
  call('webhook', 500),
  call('guard', undefined),
];

test.each<[violations: string[], calls: Call[], rows: string[]]>([
  [[], HISTORY, ['a']],
  [[], [call('webhook', 500), call('guard', 401)], []],
  [['user_1 has several rows'], HISTORY, ['a', 'a']],
  [['user_1 has several internal ids'], HISTORY, ['b']],
  [['user_1 has several internal ids'], [...HISTORY, call('guard', 200, 'b')], ['a']],
  [['user_1 was created twice'], [...HISTORY, call('register', 201, 'a')], ['a']],
  [['user_1 was acknowledged, but has no row'], [call('webhook', 200)], []],
])('The check of a history of calls finds each broken guarantee: %j', (violations, calls, rows) => {
  expect(checkHistory(calls, new Map([['user_1', rows]]))).toEqual(violations);
});
