import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Emulator } from 'clerk-emulator';
import type { Client } from 'pg';
import { z } from 'zod';
import { waitUntil } from '../../dev/system/processes';
import { SIGNING_SECRET } from '../../tests/harness/keys';
import {
  bearer,
  cookie,
  ME,
  type ParsedResponse,
  REGISTER,
  send,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../../tests/harness/requests';

/** The second of two signing secrets during a rotation. */
export const NEXT_SECRET = `whsec_${Buffer.alloc(24).toString('base64')}`;

/** Columns of the link. */
export interface Table {
  readonly name: string;
  readonly id: string;
  /** Column of Clerk's id. */
  readonly user: string;
  /** SQL of an insert whose only parameter is Clerk's id. */
  readonly insert: string;
  /** True for the application's own table, whose rows need data of a user at the provider. */
  readonly isOwn: boolean;
}

/** A running host with the installed shadcn items, its identity provider, and a connection to its database. */
export interface RunningHost {
  readonly app: string;
  /** Address of the route for `user.created`. */
  readonly hook: string;
  readonly idp: Emulator;
  readonly database: Client;
  readonly table: Table;
  /** `/` if the application has `trailingSlash`. Next.js redirects a path without it before any code of the application. */
  readonly slash: '/' | '';
  /** Returns what the application has logged. */
  readonly log: () => string;
}

/** Checks by the guarantee that they test. Each check uses its own users. */
export type Checks = Readonly<Record<string, (host: RunningHost) => Promise<void>>>;

const createUser = (idp: Emulator) => idp.createUser({ email: `${randomUUID()}@example.com` });
const newUser = ({ idp, table }: RunningHost) =>
  table.isOwn ? createUser(idp).id : `user_${randomUUID().replaceAll('-', '')}`;
const Rows = z.array(z.object({ id: z.string() }));

const me = ({ app, slash }: RunningHost, headers: Record<string, string>, query = '') =>
  send(`${app}${ME}${slash}${query}`, { headers });
const deliver = ({ hook }: RunningHost, body: string, headers = signatureHeaders(body), query = '') =>
  send(hook + query, { method: 'POST', headers, body });
/** Returns the internal ids of the rows of a user. */
async function rowsOf({ database, table }: RunningHost, user: string): Promise<string[]> {
  const select = `SELECT ${table.id}::text AS id FROM ${table.name} WHERE ${table.user} = $1`;
  return Rows.parse((await database.query(select, [user])).rows).map(({ id }) => id);
}

/** Waits until two statements of the application wait for a transaction. Throws if they do not. */
async function waitForLocks({ database }: RunningHost): Promise<void> {
  const waiting = 'SELECT 1 FROM pg_locks WHERE NOT granted';
  const overlaps = await waitUntil(async () => (await database.query(waiting)).rows.length > 1, 10_000);
  assert.ok(overlaps, 'The statements did not overlap.');
}

/** Sends guarded requests and webhooks of a user at once. */
const firstRequests = (host: RunningHost, user: string, length: number) => {
  const token = tokenFor(host.idp, user);
  return Promise.all(
    Array.from({ length }, (_, index) =>
      index % 2 === 0 ? me(host, bearer(token)) : deliver(host, userCreated(user)),
    ),
  );
};

const summary = ({ status, body }: ParsedResponse) => ({ status, body });
const count = (responses: readonly ParsedResponse[], status: number) =>
  responses.filter((response) => response.status === status).length;

const HANDSHAKE = '?__clerk_handshake=x&__clerk_handshake_nonce=x';

/** Checks of each host. */
export const GUARD: Checks = {
  async 'Without a session, a guarded route returns 401 as JSON. With a session, it returns the internal id and the Clerk id'(
    host,
  ) {
    const unauthorized = { status: 401, body: { message: 'Unauthorized' } };
    assert.deepEqual(summary(await me(host, bearer('invalid'))), unauthorized);
    const user = newUser(host);
    const token = tokenFor(host.idp, user);
    const response = summary(await me(host, bearer(token)));
    const [userId] = await rowsOf(host, user);
    assert.ok(userId);
    const body = { isAuthenticated: true, userId, identityProviderUserId: user };
    assert.deepEqual(response, { status: 200, body });
    for (const authorization of [`bearer ${token}`, `Bearer  ${token}`])
      assert.deepEqual(summary(await me(host, { authorization })), response);
    const basic = { authorization: 'Basic dTpw' };
    assert.deepEqual(summary(await me(host, { ...cookie(token), ...basic })), response);
  },

  async 'The cookies of a cross-site request are not a credential'(host) {
    const token = tokenFor(host.idp, newUser(host));
    for (const [site, status] of Object.entries({ 'cross-site': 401, 'same-site': 200, none: 200 }))
      assert.equal((await me(host, { ...cookie(token), 'sec-fetch-site': site })).status, status);
    assert.equal((await me(host, { ...bearer(token), 'sec-fetch-site': 'cross-site' })).status, 200);
  },

  async 'A handshake has no effect on a guarded route that a program calls'(host) {
    const token = tokenFor(host.idp, newUser(host));
    const handshake = `${cookie(token).cookie}; __clerk_handshake=x; __clerk_handshake_nonce=x`;
    assert.equal((await me(host, bearer(token), HANDSHAKE)).status, 200);
    assert.equal((await me(host, { cookie: handshake }, HANDSHAKE)).status, 200);
    assert.equal((await me(host, {}, HANDSHAKE)).status, 401);
  },

  async 'The middleware runs for a guarded path that ends like a static file, and not for a static file'(
    host,
  ) {
    const file = `${host.app}${ME.replace('me', 'a.css')}`;
    assert.equal((await send(file)).status, 401);
    const headers = bearer(tokenFor(host.idp, newUser(host)));
    assert.equal((await send(file, { headers })).status, 200);
    assert.equal((await send(`${host.app}/logo.svg`)).status, 200);
  },

  async 'Forty concurrent first requests and webhooks of a user leave one row'(host) {
    const { database, table } = host;
    const user = newUser(host);
    // The statements of the requests wait for this row, so they overlap.
    await database.query('BEGIN');
    await database.query(table.insert, [user]);
    const responses = firstRequests(host, user, 40);
    await waitForLocks(host);
    await database.query('ROLLBACK');
    assert.deepEqual(count(await responses, 200), 40);
    assert.equal((await rowsOf(host, user)).length, 1);
  },

  async 'A page gets the id of its own user, beside requests of other users. Without a session, it redirects to the sign-in page'(
    host,
  ) {
    const page = `${host.app}/me${host.slash}`;
    const users = Array.from({ length: 20 }, () => newUser(host));
    const pages = await Promise.all(
      users.map((user) => send(page, { headers: bearer(tokenFor(host.idp, user)) })),
    );
    for (const [index, { body }] of pages.entries()) {
      const shown = String(body).match(/(?<=<p>)[^<]*(?=<\/p>)/g);
      assert.deepEqual([...(shown ?? [])], await rowsOf(host, users[index] ?? ''));
    }
    const { status, headers, body } = await send(page);
    // Under <Suspense>, the response has begun, so its body contains the redirect.
    assert.ok((status === 307 ? headers.get('location') : String(body))?.includes('sign-in'));
  },

  async 'The register route links the given user'(host) {
    const [caller, user] = [newUser(host), newUser(host)];
    const register = (token: string) => {
      const body = JSON.stringify({ identityProviderUserId: user });
      const init = { method: 'POST', headers: bearer(token), body };
      return send(`${host.app}${REGISTER}${host.slash}${HANDSHAKE}`, init);
    };
    assert.equal((await register('invalid')).status, 401);
    for (const status of [201, 200])
      assert.equal((await register(tokenFor(host.idp, caller))).status, status);
  },

  async 'A server action gets the id of the user, rejects invalid input, and redirects without a session'(
    host,
  ) {
    const { app, idp } = host;
    const user = newUser(host);
    const headers = bearer(tokenFor(idp, user));
    const form = String((await send(`${app}/notes${host.slash}`)).body);
    const submit = async (text: string, init: RequestInit) => {
      const body = new FormData();
      for (const [, name = '', value = ''] of form.matchAll(
        /<input type="hidden" name="([^"]*)"(?: value="([^"]*)")?/g,
      ))
        body.set(name, value.replaceAll('&quot;', '"'));
      body.set('text', text);
      const { status, body: page } = await send(`${app}/notes${host.slash}`, {
        method: 'POST',
        body,
        ...init,
      });
      const [, result = ''] = /<output>(.*)<\/output>/.exec(String(page)) ?? [];
      return { status, result: result.replaceAll('&quot;', '"') };
    };
    const { result } = await submit('a note', { headers });
    const [userId] = await rowsOf(host, user);
    assert.deepEqual(JSON.parse(result), { ok: true, data: { text: 'a note', userId } });
    assert.match((await submit('', { headers })).result, /"ok":false,"status":400/);
    assert.equal((await submit('a note', {})).status, 303);
  },
};

/** Checks of the item's table and webhook. */
export const ITEM: Checks = {
  async 'An id that a database cannot store exactly gets a 401, and different ids get different users'(host) {
    for (const user of ['a\ud800', 'b\0', 'x'.repeat(256)])
      assert.equal((await me(host, bearer(tokenFor(host.idp, user)))).status, 401);
    const users = ['a\ufffd', 'x'.repeat(255)];
    for (const user of users) assert.equal((await me(host, bearer(tokenFor(host.idp, user)))).status, 200);
    const rows = await Promise.all(users.map((user) => rowsOf(host, user)));
    assert.equal(new Set(rows.flat()).size, 2);
  },

  async 'The webhook that the provider sends for a new user links the user'(host) {
    const { id } = host.idp.createUser({ email: `${newUser(host)}@example.com`, password: randomUUID() });
    assert.ok(await waitUntil(async () => (await rowsOf(host, id)).length === 1, 30_000));
  },

  async 'A webhook is verified over its exact bytes, with each of two signing secrets'(host) {
    const user = newUser(host);
    const spaced = ` ${userCreated(user)}\n`;
    assert.deepEqual(summary(await deliver(host, spaced, signatureHeaders(spaced.trim()))), {
      status: 400,
      body: { message: 'Invalid webhook signature' },
    });
    assert.deepEqual(await rowsOf(host, user), []);
    for (const secret of [SIGNING_SECRET, NEXT_SECRET])
      assert.equal((await deliver(host, spaced, signatureHeaders(spaced, { secret }))).status, 200);
    for (const id of ['a\0', 'x'.repeat(256), 1])
      assert.equal((await deliver(host, userCreated(id))).status, 400);
    assert.equal((await deliver(host, '', {})).status, 400);
    assert.equal((await deliver(host, 'x'.repeat(256 * 1024 + 1))).status, 413);
  },
};

/** Checks of an application's own table, with the configuration of the guide, and of `cacheComponents`. */
export const OWN_TABLE: Checks = {
  async 'A user whom the provider does not know gets no row: a webhook gets a 200, with a handshake too, and a request a 401'(
    host,
  ) {
    const user = `user_${randomUUID()}`;
    const event = userCreated(user);
    assert.equal((await deliver(host, event, signatureHeaders(event), HANDSHAKE)).status, 200);
    assert.equal((await me(host, bearer(tokenFor(host.idp, user)))).status, 401);
    assert.deepEqual(await rowsOf(host, user), []);
  },

  async 'If another row has the address of a new user, the request gets a 500, and the log names the column'(
    host,
  ) {
    const { id, email } = createUser(host.idp);
    await host.database.query('INSERT INTO "User" ("clerkId", email) VALUES ($1, $2)', [randomUUID(), email]);
    assert.equal((await me(host, bearer(tokenFor(host.idp, id)))).status, 500);
    assert.match(host.log(), /Unique constraint failed on .*email/);
  },

  async 'The requests and webhooks of a new user take over the row of a guest once, even if it is committed meanwhile'(
    host,
  ) {
    const { id, email } = createUser(host.idp);
    const guest = 'INSERT INTO "User" (email) VALUES ($1) RETURNING id::text';
    await host.database.query('BEGIN');
    const [row] = Rows.parse((await host.database.query(guest, [email])).rows);
    const responses = firstRequests(host, id, 8);
    await waitForLocks(host);
    await host.database.query('COMMIT');
    assert.equal(count(await responses, 200), 8);
    assert.deepEqual(await rowsOf(host, id), [row?.id]);
    const trials = 'SELECT "userId"::text AS id FROM "Trial" WHERE "userId"::text = $1';
    assert.equal((await host.database.query(trials, [row?.id])).rows.length, 1);
  },

  async 'Ten concurrent first requests of an organization leave one row, and a rejected user none. Without an organization, the response is a 403'(
    host,
  ) {
    const { app, idp, database, slash } = host;
    const tenant = (id?: string, user = createUser(idp).id) => {
      const token = tokenFor(idp, user, { o: id && { id, rol: 'admin' } });
      return send(`${app}/users/v1/tenant${slash}`, { headers: bearer(token) });
    };
    assert.equal((await tenant()).status, 403);
    assert.equal((await tenant('org_c', randomUUID())).status, 401);
    await database.query(`BEGIN; INSERT INTO "Organization" VALUES (0, 'org_a', 'A')`);
    const responses = Promise.all(Array.from({ length: 10 }, () => tenant('org_a')));
    await waitForLocks(host);
    await database.query('ROLLBACK');
    const bodies = [...(await responses), await tenant('org_b')].map(({ body }) => body);
    const { rows } = await database.query('SELECT id::text FROM "Organization" ORDER BY id');
    assert.deepEqual(new Set(Rows.parse(bodies).map(({ id }) => id)), new Set(rows.map(({ id }) => id)));
    assert.equal(rows.length, 2);
  },

  async 'The application serves the script of the provider'({ app }) {
    const script = `${app}/__clerk/npm/@clerk/clerk-js@6/dist/clerk.browser.js`;
    assert.equal((await send(script)).status, 200);
  },
};
