import { afterAll, expect, test } from 'vitest';
import { z } from 'zod';
import { freePort } from '../../dev/system/listen';
import { accessDatabase } from '../harness/dependencies/database';
import { createLocalStack } from '../harness/stack';

// The local stack consists of the service and its dependencies on this machine. `npm run dev` starts it.
const Me = z.object({ isAuthenticated: z.boolean(), userId: z.string(), identityProviderUserId: z.string() });

/** Variables of a developer's shell that belong to other programs. Each of them would break a start that reads it. */
const FOREIGN = {
  PGSSLMODE: 'require',
  PGHOST: 'elsewhere.example',
  NODE_ENV: 'production',
  LC_ALL: 'xx_XX.UTF-8',
  CLERK_SECRET_KEY: 'foreign',
  CLERK_API_URL: 'http://127.0.0.1:1',
  NEXT_PUBLIC_CLERK_IS_SATELLITE: 'true',
};

const local = createLocalStack();
afterAll(() => local.remove());
const port = await freePort();
const stack = await local.start('dev', FOREIGN, ['-p', String(port)]);
const database = accessDatabase(stack.details.databaseUrl);
afterAll(() => database.pool.end());

/** Runs a command line in a shell. */
async function paste(line = '') {
  const { written, exited } = local.run('sh', ['-c', line], FOREIGN);
  return { code: await exited, ...written };
}

test('The local stack starts on the port of -p and ends its output with the addresses and three commands that work', async () => {
  expect(stack.details.app).toBe(`http://localhost:${port}`);
  const [summary = ''] = /\nUp in [\s\S]*/.exec(stack.printed) ?? [];
  expect(summary.match(/^ {2}[A-Z].*:\d+/gm)).toHaveLength(5);
  const [createUser, token, me] = [...summary.matchAll(/^ {2}(npm run .*)$/gm)].map(([, line = '']) => line);

  const created = await paste(createUser);
  expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^user_\w+\n$/) });
  expect(created.stderr).toContain('200 {"received":true,"eventType":"user.created"}');
  const [row] = await database.idsOf(created.stdout.trim());
  expect(await paste(token)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[\w.-]+\n$/) });
  expect(Me.parse(JSON.parse((await paste(me)).stdout))).toEqual({
    isAuthenticated: true,
    userId: row?.id,
    identityProviderUserId: created.stdout.trim(),
  });
  // `next dev` compiles two routes meanwhile.
}, 120_000);

test('After Ctrl-C, the local stack exits with 0 and leaves no process', async () => {
  if (stack.child.pid !== undefined) process.kill(-stack.child.pid, 'SIGINT');
  expect(await stack.exited).toBe(0);
  await expect.poll(() => local.processes()).toEqual([]);
});
