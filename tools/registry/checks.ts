import { randomUUID } from 'node:crypto';
import type { Emulator } from 'clerk-emulator';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { waitUntil } from '../../dev/system/processes';
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
import { run } from '../temporary-project';
import type { RunningHost } from './host';
import { guideBlocks, OWN_WEBHOOK } from './hosts';

export const createUser = (idp: Emulator) => idp.createUser({ email: `${randomUUID()}@example.com` });
export const newUser = ({ idp, table }: RunningHost) =>
  table.isOwn ? createUser(idp).id : `user_${randomUUID().replaceAll('-', '')}`;
export const Rows = z.array(z.object({ id: z.string() }));

export const me = ({ app, slash }: RunningHost, headers: Record<string, string>, query = '') =>
  send(`${app}${ME}${slash}${query}`, { headers });
export const deliver = ({ hook }: RunningHost, body: string, headers = signatureHeaders(body), query = '') =>
  send(hook + query, { method: 'POST', headers, body });
/** Returns the internal ids of the rows of a user. */
export async function rowsOf({ database, table }: RunningHost, user: string): Promise<string[]> {
  const select = `SELECT ${table.id}::text AS id FROM ${table.name} WHERE ${table.user} = $1`;
  return Rows.parse((await database.query(select, [user])).rows).map(({ id }) => id);
}

/** Waits until two statements of the application wait for the transaction of `database`. Throws if they do not. */
export async function waitForLocks({ database }: RunningHost): Promise<void> {
  const waiting =
    'SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))';
  const overlaps = await waitUntil(async () => (await database.query(waiting)).rows.length > 1, 10_000);
  expect(overlaps, 'The statements did not overlap.').toBe(true);
}

/** Sends guarded requests and webhooks of a user at once. */
export const firstRequests = (host: RunningHost, user: string, length: number) => {
  const token = tokenFor(host.idp, user);
  return Promise.all(
    Array.from({ length }, (_, index) =>
      index % 2 === 0 ? me(host, bearer(token)) : deliver(host, userCreated(user)),
    ),
  );
};

export const summary = ({ status, body }: ParsedResponse) => ({ status, body });
export const count = (responses: readonly ParsedResponse[], status: number) =>
  responses.filter((response) => response.status === status).length;

export const HANDSHAKE = '?__clerk_handshake=x&__clerk_handshake_nonce=x';

/** Defines tests of the guarded routes and pages. Each test uses its own users. */
export function testGuard(host: RunningHost): void {
  test('Without a session, a guarded route returns 401 as JSON. With a session, it returns the internal id and the Clerk id', async () => {
    const unauthorized = { status: 401, body: { message: 'Unauthorized' } };
    expect(summary(await me(host, bearer('invalid')))).toEqual(unauthorized);
    const user = newUser(host);
    const token = tokenFor(host.idp, user);
    const response = summary(await me(host, bearer(token)));
    const [userId] = await rowsOf(host, user);
    expect(userId).toBeDefined();
    const body = { isAuthenticated: true, userId, identityProviderUserId: user };
    expect(response).toEqual({ status: 200, body });
    for (const authorization of [`bearer ${token}`, `Bearer  ${token}`])
      expect(summary(await me(host, { authorization }))).toEqual(response);
    const basic = { authorization: 'Basic dTpw' };
    expect(summary(await me(host, { ...cookie(token), ...basic }))).toEqual(response);
  });

  test('The cookies of a cross-site request are not a credential, also beside an empty bearer, and those of another origin not for a POST', async () => {
    const token = tokenFor(host.idp, newUser(host));
    expect((await me(host, { ...cookie(token), authorization: '' })).status).toBe(401);
    for (const [origin, status] of Object.entries({ 'https://example.com': 401, [host.app]: 400 })) {
      const init = { method: 'POST', body: '{}', headers: { ...cookie(token), origin } };
      expect((await send(`${host.app}${REGISTER}${host.slash}`, init)).status).toBe(status);
    }
    for (const [site, status] of Object.entries({ 'cross-site': 401, 'same-site': 200, none: 200 }))
      expect((await me(host, { ...cookie(token), 'sec-fetch-site': site })).status).toBe(status);
    expect((await me(host, { ...bearer(token), 'sec-fetch-site': 'cross-site' })).status).toBe(200);
  });

  test('A handshake has no effect on a guarded route that a program calls', async () => {
    const token = tokenFor(host.idp, newUser(host));
    const handshake = `${cookie(token).cookie}; __clerk_handshake=x; __clerk_handshake_nonce=x`;
    expect((await me(host, bearer(token), HANDSHAKE)).status).toBe(200);
    expect((await me(host, { cookie: handshake }, HANDSHAKE)).status).toBe(200);
    expect((await me(host, {}, HANDSHAKE)).status).toBe(401);
  });

  test('The middleware runs for a guarded path that ends like a static file, and not for a static file', async () => {
    const file = `${host.app}${ME.replace('me', 'a.css')}`;
    expect((await send(file)).status).toBe(401);
    const headers = bearer(tokenFor(host.idp, newUser(host)));
    expect((await send(file, { headers })).status).toBe(200);
    expect((await send(`${host.app}/logo.svg`)).status).toBe(200);
  });

  test('Forty concurrent first requests and webhooks of a user leave one row', async () => {
    const { database, table } = host;
    const user = newUser(host);
    // The statements of the requests wait for this row, so they overlap.
    await database.query('BEGIN');
    await database.query(table.insert, [user]);
    const responses = firstRequests(host, user, 40);
    await waitForLocks(host);
    await database.query('ROLLBACK');
    expect(count(await responses, 200)).toBe(40);
    expect(await rowsOf(host, user)).toHaveLength(1);
  });

  test('A page gets the id of its own user, beside requests of other users. Without a session, it redirects to the sign-in page', async () => {
    const page = `${host.app}/me${host.slash}`;
    const users = Array.from({ length: 20 }, () => newUser(host));
    const pages = await Promise.all(
      users.map((user) => send(page, { headers: bearer(tokenFor(host.idp, user)) })),
    );
    for (const [index, { body }] of pages.entries()) {
      const shown = String(body).match(/(?<=<p>)[^<]*(?=<\/p>)/g);
      expect([...(shown ?? [])]).toEqual(await rowsOf(host, users[index] ?? ''));
    }
    const { status, headers, body } = await send(page);
    // Under <Suspense>, the response has begun, so its body contains the redirect.
    expect(status === 307 ? headers.get('location') : body).toContain('sign-in');
  });

  test('The register route links the given user', async () => {
    const [caller, user] = [newUser(host), newUser(host)];
    const register = (token: string) => {
      const body = JSON.stringify({ identityProviderUserId: user });
      const init = { method: 'POST', headers: bearer(token), body };
      return send(`${host.app}${REGISTER}${host.slash}${HANDSHAKE}`, init);
    };
    expect((await register('invalid')).status).toBe(401);
    for (const status of [201, 200]) expect((await register(tokenFor(host.idp, caller))).status).toBe(status);
  });

  test('A server action gets the id of the user, rejects invalid input, and redirects without a session', async () => {
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
    expect(JSON.parse(result)).toEqual({ ok: true, data: { text: 'a note', userId } });
    expect((await submit('', { headers })).result).toContain('"ok":false,"status":400');
    expect((await submit('a note', {})).status).toBe(303);
  });
}

/** Defines a test of the doctor of the guide for each application. */
export function testDoctor({ idp, table, database, servers, env }: RunningHost): void {
  test.each(servers)(
    'The doctor finds no problem in $application.folder, tries everything that is installed, and leaves no row',
    async ({ application: { root, leavesOut }, folder, url }) => {
      const [[command = ''] = []] = guideBlocks('Check');
      const doctor = command.replace('lib/', `${root}lib/`).replace(ME, leavesOut === '-guard' ? '' : ME);
      const { id } = createUser(idp);
      const organization = idp.createOrganization({ name: id, slug: id, createdBy: id }).id;
      const user = table.isOwn ? ` ${id} ${organization} webhook:${OWN_WEBHOOK} --deliver` : '';
      const text = await run(doctor + user, folder, { ...env, APPLICATION_URL: url });
      // The route of another application is not checked at all.
      const notTried = !table.isOwn && leavesOut === '-webhook' ? 2 : 0;
      expect(text.split('not tried'), text).toHaveLength(notTried + 1);
      const made = `SELECT 1 FROM ${table.name} WHERE ${table.user} LIKE 'user\\_doctor%'`;
      expect((await database.query(made)).rows, 'rows that the doctor left').toEqual([]);
    },
  );
}
