import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Emulator } from 'clerk-emulator';
import type { Client } from 'pg';
import { z } from 'zod';
import type { KvEngine } from '../../dev/kv/server';
import { waitUntil } from '../../dev/system/processes';
import {
  bearer,
  deliver,
  me,
  type ParsedResponse,
  REGISTER,
  register,
  send,
  signatureHeaders,
  tokenFor,
  userCreated,
} from '../../tests/harness/requests';

/** A running application with the installed shadcn items, its identity provider, and a connection to its database. */
export interface RunningHost {
  readonly app: string;
  readonly idp: Emulator;
  readonly database: Client;
  /** The KV store of the item identity-link-cache, if it is installed. While `isDown` is true, every command fails. */
  readonly cache: { readonly call: KvEngine['call']; isDown: boolean } | undefined;
}

const newUser = () => `user_${randomUUID().replaceAll('-', '')}`;
const Rows = z.array(z.object({ user_id: z.string() }));

/** Returns the internal ids of the rows of a user. */
async function rowsOf({ database }: RunningHost, user: string): Promise<string[]> {
  const { rows } = await database.query(
    'SELECT user_id::text FROM identity_links WHERE identity_provider_user_id = $1',
    [user],
  );
  return Rows.parse(rows).map(({ user_id }) => user_id);
}

/**
 * Calls `work` while an uncommitted row of the user exists. The statements of `work` that link the user wait for this row, so
 * they overlap. Then rolls the row back.
 */
async function withOverlap<T>({ database }: RunningHost, user: string, work: () => Promise<T>): Promise<T> {
  const insert =
    'INSERT INTO identity_links (user_id, identity_provider_user_id) VALUES (gen_random_uuid(), $1)';
  await database.query('BEGIN');
  await database.query(insert, [user]);
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
    const { app, idp } = host;
    assert.deepEqual(summary(await me(app, 'invalid')), { status: 401, body: { message: 'Unauthorized' } });
    assert.equal((await send(`${app}${REGISTER}`, { method: 'POST' })).status, 401);
    const user = newUser();
    const response = summary(await me(app, tokenFor(idp, user)));
    const [userId] = await rowsOf(host, user);
    assert.match(userId ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    const body = { isAuthenticated: true, userId, identityProviderUserId: user };
    assert.deepEqual(response, { status: 200, body });
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
          index % 2 === 0 ? me(host.app, token) : deliver(host.app, userCreated(user)),
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
      Array.from({ length: 40 }, () => register(host.app, caller, { identityProviderUserId: user })),
    );
    const statuses = responses.map(({ status }) => status);
    assert.deepEqual([count(statuses, 201), count(statuses, 200)], [1, 39]);
    const body = { userId: (await rowsOf(host, user))[0], identityProviderUserId: user };
    for (const response of responses) assert.deepEqual(response.body, body);
  },

  async 'A forged webhook gets a 400 and links no user'(host) {
    const user = newUser();
    const signature = signatureHeaders(userCreated(newUser()));
    assert.deepEqual(summary(await deliver(host.app, userCreated(user), signature)), {
      status: 400,
      body: { message: 'Invalid webhook signature' },
    });
    assert.deepEqual(await rowsOf(host, user), []);
  },

  async 'A webhook is verified over its exact bytes'(host) {
    const user = newUser();
    const spaced = ` ${userCreated(user)}\n`;
    assert.equal((await deliver(host.app, spaced)).status, 200);
    assert.equal((await deliver(host.app, spaced, signatureHeaders(spaced.trim()))).status, 400);
  },

  async 'A verified event of another type or with an empty id is acknowledged, and an invalid id gets a 400'({
    app,
  }) {
    const other = JSON.stringify({ type: 'session.created', data: {} });
    assert.deepEqual((await deliver(app, other)).body, { received: true, eventType: 'session.created' });
    assert.equal((await deliver(app, userCreated(''))).status, 200);
    for (const id of ['a\0', 'x'.repeat(256), 1])
      assert.equal((await deliver(app, userCreated(id))).status, 400);
    assert.equal((await deliver(app, '', {})).status, 400);
  },

  async 'A register call with an invalid id gets a 400 that names the problem'({ app, idp }) {
    const caller = tokenFor(idp, newUser());
    const response = await register(app, caller, { identityProviderUserId: '' });
    const body = { message: 'identityProviderUserId must not be empty' };
    assert.deepEqual(summary(response), { status: 400, body });
    assert.equal((await register(app, caller, '{')).status, 400);
  },

  async 'A body above the limit gets a 413'({ app, idp }) {
    const tooLarge = { status: 413, body: { message: 'Payload too large' } };
    const caller = tokenFor(idp, newUser());
    assert.deepEqual(summary(await register(app, caller, 'x'.repeat(16 * 1024 + 1))), tooLarge);
    assert.deepEqual(summary(await deliver(app, 'x'.repeat(1024 * 1024 + 1))), tooLarge);
  },

  async 'A server component gets the id of the user. Without a session, it redirects to the sign-in page'(
    host,
  ) {
    const { app, idp } = host;
    const user = newUser();
    const page = await send(`${app}/me`, { headers: bearer(tokenFor(idp, user)) });
    assert.equal(page.status, 200);
    assert.ok(String(page.body).includes((await rowsOf(host, user))[0] ?? 'no row'));
    const { status, headers } = await send(`${app}/me`);
    assert.equal(status, 307);
    assert.ok(headers.get('location')?.includes('sign-in'));
  },

  async 'A server action gets the id of the user, rejects invalid input, and redirects without a session'(
    host,
  ) {
    const { app, idp } = host;
    const user = newUser();
    const headers = bearer(tokenFor(idp, user));
    const form = String((await send(`${app}/notes`)).body);
    const submit = async (text: string, init: RequestInit) => {
      const body = new FormData();
      for (const [, name = '', value = ''] of form.matchAll(
        /<input type="hidden" name="([^"]*)"(?: value="([^"]*)")?/g,
      ))
        body.set(name, value.replaceAll('&quot;', '"'));
      body.set('text', text);
      const { status, body: page } = await send(`${app}/notes`, { method: 'POST', body, ...init });
      const [, result = ''] = /<output>(.*)<\/output>/.exec(String(page)) ?? [];
      return { status, result: result.replaceAll('&quot;', '"') };
    };
    const { result } = await submit('a note', { headers });
    const [userId] = await rowsOf(host, user);
    assert.deepEqual(JSON.parse(result), { ok: true, data: { text: 'a note', userId } });
    assert.match((await submit('', { headers })).result, /"ok":false,"status":400/);
    assert.equal((await submit('a note', {})).status, 303);
  },

  async 'A registration that waits for a lock ends with a 500 before the lock is released'({
    app,
    idp,
    database,
  }) {
    await database.query('BEGIN; LOCK TABLE identity_links');
    try {
      assert.equal((await me(app, tokenFor(idp, newUser()))).status, 500);
    } finally {
      await database.query('ROLLBACK');
    }
  },

  async 'A database error is a 500 whose body contains no details'(host) {
    const { app, idp, database } = host;
    await database.query('ALTER TABLE identity_links RENAME TO renamed');
    try {
      const user = newUser();
      for (const response of [await me(app, tokenFor(idp, user)), await deliver(app, userCreated(user))]) {
        assert.equal(response.status, 500);
        assert.doesNotMatch(JSON.stringify(response.body), /prisma|identity|renamed|user_/i);
      }
    } finally {
      await database.query('ALTER TABLE renamed RENAME TO identity_links');
    }
  },
};

/** Checks of the item identity-link-cache. */
export const CACHE_CHECKS: typeof CHECKS = {
  async 'An id is cached for ten minutes, and a later request of its user does not need the database'(host) {
    const { app, idp, database, cache } = host;
    const user = newUser();
    const first = summary(await me(app, tokenFor(idp, user)));
    const ttl = Number(await cache?.call('TTL', `auth:user-id-by-idp:${user}`));
    assert.ok(ttl > 500 && ttl <= 600, `TTL ${ttl}`);
    await database.query('ALTER TABLE identity_links RENAME TO renamed');
    try {
      assert.deepEqual(summary(await me(app, tokenFor(idp, user))), first);
    } finally {
      await database.query('ALTER TABLE renamed RENAME TO identity_links');
    }
  },

  async 'A cache that fails has no effect on a response, also while the circuit breaker is open'({
    app,
    idp,
    cache,
  }) {
    assert.ok(cache);
    cache.isDown = true;
    try {
      for (let request = 0; request < 10; request += 1)
        assert.equal((await me(app, tokenFor(idp, newUser()))).status, 200);
    } finally {
      cache.isDown = false;
    }
  },
};
