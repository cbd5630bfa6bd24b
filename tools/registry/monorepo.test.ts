import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { SIGNING_SECRET } from '../../tests/harness/keys';
import { bearer, signatureHeaders, tokenFor, userCreated } from '../../tests/harness/requests';
import { deliver, me, newUser, rowsOf, summary, testDoctor, testGuard } from './checks';
import { NEXT_SECRET, startHost } from './host';

// A monorepo with two applications, which have the table of the item.
const OF_MONOREPO = `import path from 'node:path';

export default { transpilePackages: ['@repo/database'], turbopack: { root: path.resolve('../..') } };
`;

const host = await startHost({
  applications: [
    {
      folder: 'apps/app',
      root: '',
      leavesOut: '-webhook',
      config: OF_MONOREPO,
      middleware: 'middleware.ts',
      arguments: "{ signInUrl: '/my-sign-in' }",
    },
    { folder: 'apps/api', root: '', leavesOut: '-guard', config: OF_MONOREPO },
  ],
  database: 'packages/database',
  client: 'index.ts',
  models: '',
  sql: `CREATE TABLE identity_links (user_id UUID PRIMARY KEY,
      identity_provider_user_id VARCHAR(255) NOT NULL UNIQUE)`,
  table: {
    name: 'identity_links',
    id: 'user_id',
    user: 'identity_provider_user_id',
    insert: 'INSERT INTO identity_links (user_id, identity_provider_user_id) VALUES (gen_random_uuid(), $1)',
    isOwn: false,
  },
});

testGuard(host);
testDoctor(host);

test('An id that a database cannot store exactly gets a 401, and different ids get different users', async () => {
  for (const user of ['a\ud800', 'b\0', 'x'.repeat(256)])
    expect((await me(host, bearer(tokenFor(host.idp, user)))).status).toBe(401);
  const users = ['a\ufffd', 'x'.repeat(255)];
  for (const user of users) expect((await me(host, bearer(tokenFor(host.idp, user)))).status).toBe(200);
  const rows = await Promise.all(users.map((user) => rowsOf(host, user)));
  expect(new Set(rows.flat()).size).toBe(2);
});

test('The webhook that the provider sends for a new user links the user', async () => {
  const { id } = host.idp.createUser({ email: `${newUser(host)}@example.com`, password: randomUUID() });
  await expect.poll(() => rowsOf(host, id), { timeout: 30_000 }).toHaveLength(1);
});

test('The configuration handles the deletion of a user', async () => {
  const user = newUser(host);
  const deleted = JSON.stringify({ type: 'user.deleted', object: 'event', data: { id: user } });
  for (const [body, rows] of Object.entries({ [userCreated(user)]: 1, [deleted]: 0 })) {
    expect((await deliver(host, body)).status).toBe(200);
    expect(await rowsOf(host, user)).toHaveLength(rows);
  }
});

test('A webhook is verified over its exact bytes, with each of two signing secrets', async () => {
  const user = newUser(host);
  const spaced = ` ${userCreated(user)}\n`;
  expect(summary(await deliver(host, spaced, signatureHeaders(spaced.trim())))).toEqual({
    status: 400,
    body: { message: 'Invalid webhook signature' },
  });
  expect(await rowsOf(host, user)).toEqual([]);
  for (const secret of [SIGNING_SECRET, NEXT_SECRET])
    expect((await deliver(host, spaced, signatureHeaders(spaced, { secret }))).status).toBe(200);
  for (const id of ['a\0', 'x'.repeat(256), 1])
    expect((await deliver(host, userCreated(id))).status).toBe(400);
  expect((await deliver(host, '', {})).status).toBe(400);
  expect((await deliver(host, 'x'.repeat(256 * 1024 + 1))).status).toBe(413);
});
