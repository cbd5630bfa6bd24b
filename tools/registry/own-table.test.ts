import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { bearer, send, signatureHeaders, tokenFor, userCreated } from '../../tests/harness/requests';
import {
  count,
  createUser,
  deliver,
  firstRequests,
  HANDSHAKE,
  me,
  Rows,
  rowsOf,
  testDoctor,
  testGuard,
  waitForLocks,
} from './checks';
import { startHost } from './host';

// One application whose own table has a column for Clerk's user id, with the configuration of the guide and `cacheComponents`.
const host = await startHost({
  applications: [
    {
      folder: '.',
      root: 'src/',
      leavesOut: '-webhook',
      config: 'export default { trailingSlash: true, cacheComponents: true };\n',
      middleware: 'proxy.ts',
      arguments: `(_auth, request) => {
  if (/^\\/(?:en|users|me|notes|api)\\//.test(request.nextUrl.pathname)) return undefined;
  return NextResponse.redirect(new URL('/en' + request.nextUrl.pathname, request.url));
}, async () => ({ frontendApiProxy: { enabled: true } })`,
    },
  ],
  database: '.',
  client: 'src/lib/prisma.ts',
  models: `model User {
  id      Int     @id @default(autoincrement())
  email   String  @unique
  clerkId String? @unique
}

model Trial {
  userId Int @id
}

model Organization {
  id      Int    @id @default(autoincrement())
  clerkId String @unique
  name    String
  slug    String @unique
}
`,
  sql: `CREATE TABLE "User" (id SERIAL PRIMARY KEY, email TEXT NOT NULL UNIQUE, "clerkId" TEXT UNIQUE);
      CREATE TABLE "Trial" ("userId" INT PRIMARY KEY);
      CREATE TABLE "Organization" (id SERIAL PRIMARY KEY, "clerkId" TEXT UNIQUE, name TEXT, slug TEXT UNIQUE)`,
  table: {
    name: '"User"',
    id: 'id',
    user: '"clerkId"',
    insert: `INSERT INTO "User" ("clerkId", email) VALUES ($1, $1 || '@example.com')`,
    isOwn: true,
  },
});

testGuard(host);
testDoctor(host);

test('A user whom the provider does not know gets no row: a webhook gets a 200, with a handshake too, and a request a 401', async () => {
  const user = `user_${randomUUID()}`;
  const event = userCreated(user);
  expect((await deliver(host, event, signatureHeaders(event), HANDSHAKE)).status).toBe(200);
  expect((await me(host, bearer(tokenFor(host.idp, user)))).status).toBe(401);
  expect(await rowsOf(host, user)).toEqual([]);
});

test('If another row has the address of a new user, the request gets a 500, and the log names the column', async () => {
  const { id, email } = createUser(host.idp);
  await host.database.query('INSERT INTO "User" ("clerkId", email) VALUES ($1, $2)', [randomUUID(), email]);
  expect((await me(host, bearer(tokenFor(host.idp, id)))).status).toBe(500);
  expect(host.log()).toMatch(/Unique constraint failed on .*email/);
});

test('The requests and webhooks of a new user take over the row of a guest once, even if it is committed meanwhile', async () => {
  const { id, email } = createUser(host.idp);
  const guest = 'INSERT INTO "User" (email) VALUES ($1) RETURNING id::text';
  await host.database.query('BEGIN');
  const [row] = Rows.parse((await host.database.query(guest, [email])).rows);
  const responses = firstRequests(host, id, 8);
  await waitForLocks(host);
  await host.database.query('COMMIT');
  expect(count(await responses, 200)).toBe(8);
  expect(await rowsOf(host, id)).toEqual([row?.id]);
  const trials = 'SELECT "userId"::text AS id FROM "Trial" WHERE "userId"::text = $1';
  expect((await host.database.query(trials, [row?.id])).rows).toHaveLength(1);
});

test('A new user takes over the row of a guest whose address differs only in case. In it, `_` is not a wildcard', async () => {
  const { id, email } = host.idp.createUser({ email: `a_${randomUUID()}@example.com` });
  const guests = [email.replace('a_', 'ab'), email.replace('a_', 'A_')];
  const guest = 'INSERT INTO "User" (email) VALUES ($1), ($2) RETURNING id::text';
  const [, row] = Rows.parse((await host.database.query(guest, guests)).rows);
  expect((await me(host, bearer(tokenFor(host.idp, id)))).status).toBe(200);
  expect(await rowsOf(host, id)).toEqual([row?.id]);
});

test('Ten concurrent first requests of an organization leave one row, and a rejected user none. Without an organization, and for one that the provider does not have, the response is a 403', async () => {
  const { app, idp, database, slash } = host;
  const tenant = (id?: string, user = createUser(idp).id) => {
    const token = tokenFor(idp, user, { o: id && { id, rol: 'admin' } });
    return send(`${app}/users/v1/tenant${slash}`, { headers: bearer(token) });
  };
  const createdBy = createUser(idp).id;
  const [a, b] = ['a', 'b'].map((name) => idp.createOrganization({ name, slug: name, createdBy }).id);
  expect((await tenant()).status).toBe(403);
  expect((await tenant('org_unknown')).status).toBe(403);
  expect((await tenant(a, randomUUID())).status).toBe(401);
  await database.query(`BEGIN; INSERT INTO "Organization" VALUES (0, '${a}', 'A', 'A')`);
  const responses = Promise.all(Array.from({ length: 10 }, () => tenant(a)));
  await waitForLocks(host);
  await database.query('ROLLBACK');
  const bodies = [...(await responses), await tenant(b)].map(({ body }) => body);
  const { rows } = await database.query(`SELECT id::text FROM "Organization" WHERE slug IN ('a', 'b')`);
  expect(new Set(Rows.parse(bodies).map(({ id }) => id))).toEqual(new Set(rows.map(({ id }) => id)));
  expect(rows).toHaveLength(2);
  await database.query(`UPDATE "Organization" SET "clerkId" = 'org_before' WHERE "clerkId" = $1`, [b]);
  expect((await tenant(b)).status).toBe(500);
  expect(host.log()).toMatch(/row of a new tenant cannot be inserted[\s\S]*constraint failed on .*slug/);
});

test('The application serves the script of the provider', async () => {
  const script = `${host.app}/__clerk/npm/@clerk/clerk-js@6/dist/clerk.browser.js`;
  expect((await send(script)).status).toBe(200);
});
