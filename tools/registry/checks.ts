import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Emulator } from 'clerk-emulator';
import type { Client } from 'pg';
import { z } from 'zod';
import { waitUntil } from '../../dev/system/processes';
import {
  bearer,
  cookie,
  HOOK,
  ME,
  type ParsedResponse,
  REGISTER,
  send,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../../tests/harness/requests';
import type { Host } from './hosts';

/** The second of two signing secrets during a rotation. */
export const NEXT_SECRET = `whsec_${Buffer.alloc(24).toString('base64')}`;

/** A running application with the installed shadcn items, its identity provider, and a connection to its database. */
export interface RunningHost {
  readonly app: string;
  readonly idp: Emulator;
  readonly database: Client;
  readonly table: Host['table'];
  /** `/` if the application has `trailingSlash`. Next.js redirects a path without it before any code of the application. */
  readonly slash: '/' | '';
}

const newUser = () => `user_${randomUUID().replaceAll('-', '')}`;
const Rows = z.array(z.object({ id: z.string() }));

const me = ({ app, slash }: RunningHost, headers: Record<string, string>, query = '') =>
  send(`${app}${ME}${slash}${query}`, { headers });
const deliver = ({ app, slash }: RunningHost, body: string, headers = signatureHeaders(body), query = '') =>
  send(`${app}${HOOK}${slash}${query}`, { method: 'POST', headers, body });
const register = ({ app, slash }: RunningHost, token: string, body: unknown, query = '') =>
  send(`${app}${REGISTER}${slash}${query}`, {
    method: 'POST',
    headers: bearer(token),
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

/** Returns the internal ids of the rows of a user. */
async function rowsOf({ database, table }: RunningHost, user: string): Promise<string[]> {
  const select = `SELECT ${table.id}::text AS id FROM ${table.name} WHERE ${table.user} = $1`;
  return Rows.parse((await database.query(select, [user])).rows).map(({ id }) => id);
}

/**
 * Calls `work` while an uncommitted row of the user exists. The statements of `work` that link the user wait for this row, so
 * they overlap. Then rolls the row back.
 */
async function withOverlap<T>(
  { database, table }: RunningHost,
  user: string,
  work: () => Promise<T>,
): Promise<T> {
  await database.query('BEGIN');
  await database.query(table.insert, [user]);
  const result = work();
  const waiting = 'SELECT 1 FROM pg_locks WHERE NOT granted';
  const overlaps = await waitUntil(async () => (await database.query(waiting)).rows.length > 1, 5_000);
  await database.query('ROLLBACK');
  assert.ok(overlaps, 'The statements did not overlap.');
  return result;
}

const summary = ({ status, body }: ParsedResponse) => ({ status, body });
const count = <T>(items: readonly T[], item: T) => items.filter((each) => each === item).length;

/** Checks of a running application. The name of a check states the guarantee to check. Each check uses its own users. */
export const CHECKS: Readonly<Record<string, (host: RunningHost) => Promise<void>>> = {
  async 'Without a session, a guarded route returns 401 as JSON. With a session, it returns the internal id and the Clerk id'(
    host,
  ) {
    const unauthorized = { status: 401, body: { message: 'Unauthorized' } };
    assert.deepEqual(summary(await me(host, bearer('invalid'))), unauthorized);
    assert.deepEqual(summary(await register(host, 'invalid', {})), unauthorized);
    const user = newUser();
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

  async 'An id that a database cannot store exactly gets a 401, and different ids get different users'(host) {
    for (const user of ['a\ud800', 'b\0', 'x'.repeat(256)])
      assert.equal((await me(host, bearer(tokenFor(host.idp, user)))).status, 401);
    const users = ['a\ufffd', 'x'.repeat(255)];
    for (const user of users) assert.equal((await me(host, bearer(tokenFor(host.idp, user)))).status, 200);
    const rows = await Promise.all(users.map((user) => rowsOf(host, user)));
    assert.equal(new Set(rows.flat()).size, 2);
  },

  async 'The cookies of a cross-site request are not a credential'(host) {
    const token = tokenFor(host.idp, newUser());
    for (const [site, status] of Object.entries({ 'cross-site': 401, 'same-site': 200, none: 200 }))
      assert.equal((await me(host, { ...cookie(token), 'sec-fetch-site': site })).status, status);
    assert.equal((await me(host, { ...bearer(token), 'sec-fetch-site': 'cross-site' })).status, 200);
  },

  async 'A handshake has no effect on a guarded route that a program calls, on the webhook or on the register route'(
    host,
  ) {
    const [user, query] = [newUser(), '?__clerk_handshake=x&__clerk_handshake_nonce=x'];
    const token = tokenFor(host.idp, user);
    const given = `${cookie(token).cookie}; __clerk_handshake=x; __clerk_handshake_nonce=x`;
    const expired = { cookie: '__client_uat=1; __clerk_db_jwt=x', 'sec-fetch-dest': 'document' };
    const body = userCreated(user);
    const responses = [
      await me(host, bearer(token), query),
      await me(host, { cookie: given }, query),
      await deliver(host, body, { ...signatureHeaders(body), cookie: given }, query),
      await deliver(host, body, { ...signatureHeaders(body), ...expired }),
      await register(host, token, { identityProviderUserId: user }, query),
    ];
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 200, 200, 200, 200],
    );
    assert.equal((await me(host, {}, query)).status, 401);
  },

  async 'The middleware does not run for a static file'({ app }) {
    assert.equal((await send(`${app}/logo.svg`)).status, 200);
  },

  async 'The webhook that the provider sends for a new user links the user'(host) {
    const { id } = host.idp.createUser({ email: `${newUser()}@example.com`, password: randomUUID() });
    assert.ok(await waitUntil(async () => (await rowsOf(host, id)).length === 1, 30_000));
  },

  async 'Forty concurrent first requests and webhooks of a user leave one row'(host) {
    const user = newUser();
    const token = tokenFor(host.idp, user);
    const responses = await withOverlap(host, user, () =>
      Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          index % 2 === 0 ? me(host, bearer(token)) : deliver(host, userCreated(user)),
        ),
      ),
    );
    assert.deepEqual(
      responses.filter(({ status }) => status !== 200),
      [],
    );
    assert.equal((await rowsOf(host, user)).length, 1);
  },

  async 'One of forty concurrent register calls gets a 201, and the others get a 200'(host) {
    const [caller, user] = [tokenFor(host.idp, newUser()), newUser()];
    const responses = await Promise.all(
      Array.from({ length: 40 }, () => register(host, caller, { identityProviderUserId: user })),
    );
    const statuses = responses.map(({ status }) => status);
    assert.deepEqual([count(statuses, 201), count(statuses, 200)], [1, 39]);
    const body = { userId: (await rowsOf(host, user))[0], identityProviderUserId: user };
    for (const response of responses) assert.deepEqual(response.body, body);
  },

  async 'A forged webhook gets a 400 and links no user'(host) {
    const user = newUser();
    const signature = signatureHeaders(userCreated(newUser()));
    assert.deepEqual(summary(await deliver(host, userCreated(user), signature)), {
      status: 400,
      body: { message: 'Invalid webhook signature' },
    });
    assert.deepEqual(await rowsOf(host, user), []);
  },

  async 'A webhook is verified over its exact bytes, with each of two signing secrets'(host) {
    const user = newUser();
    const spaced = ` ${userCreated(user)}\n`;
    assert.equal((await deliver(host, spaced)).status, 200);
    const rotated = signatureHeaders(spaced, { secret: NEXT_SECRET });
    assert.equal((await deliver(host, spaced, rotated)).status, 200);
    assert.equal((await deliver(host, spaced, signatureHeaders(spaced.trim()))).status, 400);
  },

  async 'A verified event of another type or with an empty id is acknowledged, and an invalid id gets a 400'(
    host,
  ) {
    const other = JSON.stringify({ type: 'session.created', data: {} });
    assert.deepEqual((await deliver(host, other)).body, { received: true, eventType: 'session.created' });
    assert.equal((await deliver(host, userCreated(''))).status, 200);
    for (const id of ['a\0', 'x'.repeat(256), 1])
      assert.equal((await deliver(host, userCreated(id))).status, 400);
    assert.equal((await deliver(host, '', {})).status, 400);
  },

  async 'A register call with an invalid id gets a 400 that names the problem'(host) {
    const caller = tokenFor(host.idp, newUser());
    const response = await register(host, caller, { identityProviderUserId: '' });
    const body = { message: 'identityProviderUserId must not be empty' };
    assert.deepEqual(summary(response), { status: 400, body });
    assert.equal((await register(host, caller, '{')).status, 400);
  },

  async 'A body above the limit gets a 413'(host) {
    const tooLarge = { status: 413, body: { message: 'Payload too large' } };
    const caller = tokenFor(host.idp, newUser());
    assert.deepEqual(summary(await register(host, caller, 'x'.repeat(16 * 1024 + 1))), tooLarge);
    assert.deepEqual(summary(await deliver(host, 'x'.repeat(256 * 1024 + 1))), tooLarge);
  },

  async 'A server component gets the id of the user. Without a session, it redirects to the sign-in page'(
    host,
  ) {
    const { app, idp } = host;
    const user = newUser();
    const page = await send(`${app}/me${host.slash}`, { headers: bearer(tokenFor(idp, user)) });
    assert.equal(page.status, 200);
    assert.ok(String(page.body).includes((await rowsOf(host, user))[0] ?? 'no row'));
    const { status, headers } = await send(`${app}/me${host.slash}`);
    assert.equal(status, 307);
    assert.ok(headers.get('location')?.includes('sign-in'));
  },

  async 'A server action gets the id of the user, rejects invalid input, and redirects without a session'(
    host,
  ) {
    const { app, idp } = host;
    const user = newUser();
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

  async 'A registration that waits for a lock ends with a 500 before the lock is released'(host) {
    await host.database.query(`BEGIN; LOCK TABLE ${host.table.name}`);
    try {
      const { status, body } = await me(host, bearer(tokenFor(host.idp, newUser())));
      assert.deepEqual({ status, body }, { status: 500, body: { message: 'Internal Server Error' } });
    } finally {
      await host.database.query('ROLLBACK');
    }
  },
};
