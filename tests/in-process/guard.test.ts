import { expect, test } from 'vitest';
import { signVerdict, VERDICT } from '#lib/idp/verdict';
import { importAsProcess, startInProcess } from '../harness/in-process';

const { database, kv } = await startInProcess();
const { resolveContext } = await importAsProcess(() => import('#lib/guard'));
const contextOf = (user: string) => resolveContext(new Headers({ [VERDICT]: signVerdict({ user }) }));

test('30 concurrent requests of three new users get the correct internal ids with six cache commands and four database statements', async () => {
  database.takeStatements();
  const users = Array.from({ length: 30 }, (_, index) => `user_${index % 3}`);
  const contexts = await Promise.all(users.map(contextOf));
  for (const [index, user] of users.entries()) {
    expect(await database.rowsOf(user)).toMatchObject([{ id: contexts[index]?.userId }]);
  }
  expect([kv.takeCommands().length, database.takeStatements().length]).toEqual([6, 4]);
});
