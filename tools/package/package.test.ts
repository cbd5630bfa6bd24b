import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { waitUntil } from '../../dev/system/processes';
import { bearer, cookie, send, signatureHeaders, tokenFor, userCreated } from '../../tests/harness/requests';
import { temporaryFolder } from '../../tests/vitest/temporary-folder';
import { linkFiles, run } from '../temporary-project';
import { type RunningHost, startHost, write } from './host';
import { HOSTS } from './hosts';

// The tarballs of the package and of an older version, and the packages of this checkout, which the hosts use.
const checkout = temporaryFolder();
mkdirSync(path.join(checkout, 'npm'));
linkFiles('node_modules', path.join(checkout, 'npm/node_modules'));
rmSync(path.join(checkout, 'npm/node_modules/clerk-identity-link'));
await run('npm run build -w clerk-identity-link', '.', process.env);
const dist = path.join(checkout, 'dist');
cpSync('packages/clerk-identity-link/dist', dist, { recursive: true });
for (const [name, version] of Object.entries({
  'clerk-identity-link': '',
  older: 'npm pkg set version=0.0.1 &&',
}))
  await run(`${version} mv $(npm pack --loglevel=error) ../${name}.tgz`, dist, process.env);

const Rows = z.array(z.object({ id: z.string() }));
const LINKED = 'SELECT id::text FROM "User" WHERE "clerkId" = $1';
const TRIALS = `SELECT "userId"::text AS id FROM "Trial" WHERE "userId" = (${LINKED.replace('::text', '')})`;
const GUEST = 'INSERT INTO "User" (email, "clerkId") VALUES ($1, $2) RETURNING id::text';

test('The release script checks the package and publishes it, up to the upload', async () => {
  const output = await run('node packages/release.mjs clerk-identity-link --dry-run 2>&1', '.', process.env);
  expect(output).toContain('All good!');
  expect(output).toMatch(/\+ clerk-identity-link@\d/);
});

const WORKER = `
import { identityLink } from 'clerk-identity-link';
import 'clerk-identity-link/drizzle';
const users = { find: async () => 'found', insert: async () => undefined, exists: async () => true };
console.log(JSON.stringify(await identityLink({ users }).register('user_worker')));
`.replaceAll('\n', ' ');

describe.each(HOSTS)('The package in a host with $name', (definition) => {
  let host: RunningHost;
  beforeAll(async () => {
    host = await startHost(checkout, definition);
  }, 300_000);
  afterAll(() => host?.stop());

  const createUser = (email = `${randomUUID()}@example.com`) => host.idp.createUser({ email });
  const select = async (statement: string, values: unknown[]) =>
    Rows.parse((await host.database.query(statement, values)).rows).map(({ id }) => id);
  const insertGuest = (email: string) =>
    select(GUEST, [email, definition.unlinked && `${definition.unlinked}${randomUUID()}`]);
  const me = (headers: Record<string, string>) => send(`${host.url}/api/me`, { headers });
  const meAs = (user: string) => me(bearer(tokenFor(host.idp, user)));
  const deliver = (body: string, headers = signatureHeaders(body)) =>
    send(`${host.url}/api/clerk`, { method: 'POST', headers, body });
  const idsIn = (responses: readonly { readonly body: unknown }[]) =>
    new Set(responses.map(({ body }) => z.object({ userId: z.string() }).parse(body).userId));
  /** Waits until a statement of the application waits for the transaction of `database`. */
  async function waitForLocks(): Promise<void> {
    const waiting =
      'SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))';
    const overlaps = await waitUntil(
      async () => (await host.database.query(waiting)).rows.length > 0,
      20_000,
    );
    expect(overlaps, 'The statements did not overlap.').toBe(true);
  }

  test('A guarded route returns 401 in JSON without a session, and both ids with one. The middleware of the host runs', async () => {
    expect(await me(bearer('invalid'))).toMatchObject({ status: 401, body: { message: 'Unauthorized' } });
    const { id } = createUser();
    const response = await meAs(id);
    const [userId] = await select(LINKED, [id]);
    expect(response).toMatchObject({
      status: 200,
      body: { isAuthenticated: true, userId, identityProviderUserId: id },
    });
    expect(response.headers.get('x-host')).toBe('ran');
    expect((await send(`${host.url}/api/trpc`, { headers: bearer(tokenFor(host.idp, id)) })).body).toEqual(
      response.body,
    );
  });

  test('Twenty first requests beside five webhooks leave one row, one id and one trial, and report one creation', async () => {
    const { id, email } = createUser();
    // The statements of the requests wait for this row, so they overlap.
    await host.database.query('BEGIN');
    await insertGuest(email.replace('@', '+other@'));
    await host.database.query('INSERT INTO "User" (email, "clerkId") VALUES ($1, $2)', [email, id]);
    const deliveries = Array.from({ length: 5 }, () => deliver(userCreated(id)));
    const requests = Array.from({ length: 20 }, () => meAs(id));
    await waitForLocks();
    await host.database.query('ROLLBACK');
    expect(idsIn(await Promise.all(requests))).toEqual(new Set(await select(LINKED, [id])));
    for (const { status } of await Promise.all(deliveries)) expect(status).toBe(200);
    const trials = await select(TRIALS, [id]);
    expect(trials).toHaveLength(1);
    expect(host.log().match(new RegExp(`created ${trials[0]}\\b`, 'g'))).toHaveLength(1);
  });

  test('A webhook links a user before the first request. It rejects forged ones, and gives an unknown user no row', async () => {
    const { id } = createUser();
    expect((await deliver(userCreated(id), signatureHeaders('other'))).status).toBe(400);
    expect(await select(LINKED, [id])).toEqual([]);
    expect((await deliver(userCreated(id))).status).toBe(200);
    const rows = await select(LINKED, [id]);
    expect(idsIn([await meAs(id)])).toEqual(new Set(rows));
    const unknown = `user_${randomUUID()}`;
    expect((await deliver(userCreated(unknown))).status).toBe(200);
    expect((await meAs(unknown)).status).toBe(401);
    expect(await select(LINKED, [unknown])).toEqual([]);
    const updated = JSON.stringify({ type: 'user.updated', object: 'event', data: { id } });
    expect((await deliver(updated)).status).toBe(200);
    expect(host.log()).toContain(`updated { userId: '${rows[0]}', created: false }`);
  });

  test('A row that has the id of Clerk keeps its own id, without a call to Clerk', async () => {
    const clerkId = `user_${randomUUID()}`; // Clerk does not have it.
    const kept = await select(GUEST, [`${clerkId}@example.com`, clerkId]);
    expect(idsIn([await meAs(clerkId)])).toEqual(new Set(kept));
  });

  test('The requests of a new user take over a row from before the sign-up once, even if it is committed meanwhile', async () => {
    const { id, email } = createUser();
    await host.database.query('BEGIN');
    const guest = await insertGuest(email);
    const responses = Array.from({ length: 10 }, () => meAs(id));
    const deliveries = Array.from({ length: 2 }, () => deliver(userCreated(id)));
    await waitForLocks();
    await host.database.query('COMMIT');
    await Promise.all(deliveries);
    expect(idsIn(await Promise.all(responses))).toEqual(new Set(guest));
    expect(await select(TRIALS, [id])).toEqual(guest);
  });

  test('The cookies of another site are not a credential. Where the middleware does not run, the log names it', async () => {
    const token = tokenFor(host.idp, createUser().id);
    for (const [site, status] of Object.entries({ 'cross-site': 401, 'same-origin': 200 }))
      expect((await me({ ...cookie(token), 'sec-fetch-site': site })).status).toBe(status);
    expect((await me({ ...bearer(token), 'sec-fetch-site': 'cross-site' })).status).toBe(200);
    expect((await send(`${host.url}/me.css`, { headers: bearer(token) })).status).toBe(500);
    expect(host.log()).toContain("can't detect usage of clerkMiddleware()");
  });

  test('Ten requests of an organization leave one row. One that Clerk does not have gets a 403', async () => {
    const user = createUser().id;
    const name = randomUUID();
    const organization = host.idp.createOrganization({ name, slug: name, createdBy: user }).id;
    const tenant = (id?: string) =>
      send(`${host.url}/api/tenant`, {
        headers: bearer(tokenFor(host.idp, user, { o: id && { id, rol: 'admin' } })),
      });
    for (const id of [undefined, `org_${randomUUID()}`]) expect((await tenant(id)).status).toBe(403);
    const responses = await Promise.all(Array.from({ length: 10 }, () => tenant(organization)));
    const rows = await select('SELECT id::text FROM "Organization" WHERE name = $1', [name]);
    expect(new Set(Rows.parse(responses.map(({ body }) => body)).map(({ id }) => id))).toEqual(new Set(rows));
    expect(rows).toHaveLength(1);
  });

  test('A page and a server action get the id of the user, and redirect to the sign-in page without a session', async () => {
    const { id } = createUser();
    const headers = bearer(tokenFor(host.idp, id));
    const [, shown] = /<p>(\d+)<\/p>/.exec(String((await send(`${host.url}/me`, { headers })).body)) ?? [];
    expect([shown]).toEqual(await select(LINKED, [id]));
    expect((await send(`${host.url}/me`)).headers.get('location')).toContain('sign-in');
    const form = String((await send(`${host.url}/notes`)).body);
    const body = new FormData();
    for (const [, name = '', value = ''] of form.matchAll(
      /<input type="hidden" name="([^"]*)"(?: value="([^"]*)")?/g,
    ))
      body.set(name, value.replaceAll('&quot;', '"'));
    body.set('text', 'a note');
    const submit = (init: RequestInit) => send(`${host.url}/notes`, { method: 'POST', body, ...init });
    const [, result = ''] = /<output>(.*)<\/output>/.exec(String((await submit({ headers })).body)) ?? [];
    expect(JSON.parse(result.replaceAll('&quot;', '"'))).toEqual({
      ok: true,
      data: { text: 'a note', userId: shown },
    });
    expect((await submit({})).status).toBe(303);
  });

  test('The types reject a wrong column, a wrong value and a wrong model, at their lines', async () => {
    const { files, tables, wrong } = definition;
    const right = files[tables] ?? '';
    await host.run('tsc --noEmit');
    const [folder, name] = [path.join(host.root, path.dirname(tables)), path.basename(tables, '.ts')];
    const lines = wrong.map(([from, to], index) => {
      write(folder, { [`${name}${index}.ts`]: right.replace(from, to) });
      return `${name}${index}.ts(${right.slice(0, right.indexOf(from)).split('\n').length},`;
    });
    const text = await host.run('tsc --noEmit || true');
    for (const index of lines.keys()) rmSync(path.join(folder, `${name}${index}.ts`));
    for (const line of lines) expect(text).toContain(line);
  });

  test('The doctor tries everything and leaves no row. It names what goes past the link, in a file with CRLF too, and a missing unique key', async () => {
    const { id } = createUser();
    const organization = host.idp.createOrganization({ name: id, slug: id, createdBy: id }).id;
    const doctor = `clerk-identity-link doctor ${id} ${organization}`;
    const text = await host.run(doctor);
    expect(text.match(/^\S+(?: \w+)?(?= {2})/gm)).toEqual(Array(5).fill('ok'));
    expect(await select(LINKED, [id])).toEqual([]);
    const file = `${definition.source}lib/past.ts`;
    write(host.folder, { [file]: definition.unlinkedCode.replaceAll('\n', '\r\n') });
    await host.database.query('ALTER TABLE "User" DROP CONSTRAINT "User_clerkId_key"');
    const past = await host.run(`! ${doctor}`);
    await host.database.query('ALTER TABLE "User" ADD UNIQUE ("clerkId")');
    rmSync(path.join(host.folder, file));
    expect(past).toMatch(/^FAILURE +a registration of users: .*unique/m);
    expect(past.match(/past\.ts:\d+/g)).toEqual(['past.ts:2']);
  });

  test.runIf(definition.name === 'Drizzle')('A worker registers a user without Next.js', async () => {
    const output = await host.run(`node --input-type=module --eval ${JSON.stringify(WORKER)}`);
    expect(JSON.parse(output)).toEqual({ userId: 'found', created: false });
  });

  test('The command init links the model with a column for the id of Clerk, and overwrites nothing', async () => {
    const file = path.join(host.folder, `${definition.source}lib/identity.ts`);
    expect(await host.run('clerk-identity-link init')).toContain(`Not overwritten: ${file}`);
    rmSync(file);
    expect(await host.run('clerk-identity-link init')).toContain(`Wrote ${file}`);
    await host.run('tsc --noEmit');
  });
});
