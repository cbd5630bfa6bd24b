import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { waitUntil } from '../../dev/system/processes';
import { bearer, send, signatureHeaders, tokenFor, userCreated } from '../../tests/harness/requests';
import { temporaryFolder } from '../../tests/vitest/temporary-folder';
import { linkFiles, run } from '../temporary-project';
import { type RunningHost, startHost, write } from './host';
import { HOSTS, WRONG } from './hosts';

// The tarball of the package, and the packages of this checkout, which the hosts use.
const checkout = temporaryFolder();
mkdirSync(path.join(checkout, 'npm'));
linkFiles('node_modules', path.join(checkout, 'npm/node_modules'));
rmSync(path.join(checkout, 'npm/node_modules/clerk-identity-link'));
await run('npm run build -w clerk-identity-link', '.', process.env);
const dist = path.resolve('packages/clerk-identity-link/dist');
await run(`mv $(npm pack --loglevel=error ${dist}) clerk-identity-link.tgz`, checkout, process.env);

const Rows = z.array(z.object({ id: z.string() }));
const LINKED = 'SELECT id::text FROM "User" WHERE "clerkId" = $1';
const GUEST = 'INSERT INTO "User" (email, "clerkId") VALUES ($1, $2)';
const Caller = z.object({ userId: z.string() });

test('The release script checks the package and publishes it, up to the upload', async () => {
  const output = await run('node packages/release.mjs clerk-identity-link --dry-run 2>&1', '.', process.env);
  expect(output).toContain('All good!');
  expect(output).toMatch(/\+ clerk-identity-link@\d/);
});

describe.each(HOSTS)('The package in a host with $name', (definition) => {
  let host: RunningHost;
  beforeAll(async () => {
    host = await startHost(checkout, definition);
  }, 300_000);
  afterAll(() => host?.stop());

  const createUser = () => {
    const email = `${randomUUID()}@example.com`;
    return { email, id: host.idp.createUser({ email }).id };
  };
  const select = async (statement: string, values: unknown[]) =>
    Rows.parse((await host.database.query(statement, values)).rows).map(({ id }) => id);
  const me = (headers: Record<string, string>) => send(`${host.url}/api/me`, { headers });
  const meAs = (user: string) => me(bearer(tokenFor(host.idp, user)));
  const deliver = (body: string) =>
    send(`${host.url}/api/clerk`, { method: 'POST', headers: signatureHeaders(body), body });

  test('A guarded route returns 401 in JSON without a session, and both ids with one. Where the middleware does not run, the log names it', async () => {
    expect(await me(bearer('invalid'))).toMatchObject({ status: 401, body: { message: 'Unauthorized' } });
    const { id } = createUser();
    const response = await meAs(id);
    const [userId] = await select(LINKED, [id]);
    const body = { isAuthenticated: true, userId, identityProviderUserId: id };
    expect(response).toMatchObject({ status: 200, body });
    expect(response.headers.get('x-host')).toBe('ran');
    const headers = bearer(tokenFor(host.idp, id));
    expect((await send(`${host.url}/api/trpc`, { headers })).body).toEqual(body);
    expect((await send(`${host.url}/me.css`, { headers })).status).toBe(500);
    expect(host.log()).toContain("can't detect usage of clerkMiddleware()");
  });

  test('Twenty first requests beside five webhooks leave one row, one id and one trial, and report one creation', async () => {
    const { id, email } = createUser();
    // The statements of the requests wait for this row, so they overlap.
    await host.database.query('BEGIN');
    await host.database.query(GUEST, [email, id]);
    const deliveries = Array.from({ length: 5 }, () => deliver(userCreated(id)));
    const requests = Array.from({ length: 20 }, () => meAs(id));
    const waiting = 'SELECT 1 FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))';
    const overlaps = async () => (await host.database.query(waiting)).rows.length > 0;
    expect(await waitUntil(overlaps, 20_000), 'The statements did not overlap.').toBe(true);
    await host.database.query('ROLLBACK');
    const ids = (await Promise.all(requests)).map(({ body }) => Caller.parse(body).userId);
    const [userId] = await select(LINKED, [id]);
    expect(new Set(ids)).toEqual(new Set([userId]));
    for (const { status } of await Promise.all(deliveries)) expect(status).toBe(200);
    expect(await select('SELECT "userId"::text AS id FROM "Trial" WHERE "userId" = $1', [userId])).toEqual([
      userId,
    ]);
    expect(host.log().match(new RegExp(`created ${userId}\\b`, 'g'))).toHaveLength(1);
    const updated = JSON.stringify({ type: 'user.updated', object: 'event', data: { id } });
    expect((await deliver(updated)).status).toBe(200);
    expect(host.log()).toContain(`updated { userId: '${userId}', created: false }`);
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
    const { files, tables } = definition;
    const right = files[tables] ?? '';
    await host.run('tsc --noEmit');
    const [folder, name] = [path.join(host.root, path.dirname(tables)), path.basename(tables, '.ts')];
    const given = WRONG.filter(([from]) => right.includes(from));
    const lines = given.map(([from, to], index) => {
      write(folder, { [`${name}${index}.ts`]: right.replace(from, to) });
      return `${name}${index}.ts(${right.slice(0, right.indexOf(from)).split('\n').length},`;
    });
    const text = await host.run('tsc --noEmit || true');
    for (const index of lines.keys()) rmSync(path.join(folder, `${name}${index}.ts`));
    for (const line of lines) expect(text).toContain(line);
  });

  test('The doctor tries everything and leaves no row. It names what goes past the link, and a missing unique key', async () => {
    const { id } = createUser();
    const organization = host.idp.createOrganization({ name: id, slug: id, createdBy: id }).id;
    const doctor = `clerk-identity-link doctor ${id} ${organization}`;
    const text = await host.run(doctor);
    expect(text.match(/^\S+(?: \w+)?(?= {2})/gm)).toEqual(Array(6).fill('ok'));
    expect(await select(LINKED, [id])).toEqual([]);
    const file = `${definition.source}lib/past.ts`;
    write(host.folder, { [file]: definition.past });
    await host.database.query('ALTER TABLE "User" DROP CONSTRAINT "User_clerkId_key"');
    const past = await host.run(`! ${doctor}`);
    await host.database.query('ALTER TABLE "User" ADD UNIQUE ("clerkId")');
    rmSync(path.join(host.folder, file));
    expect(past).toMatch(/^FAILURE +a registration of users: .*unique/m);
    expect(past).toMatch(/^FAILURE +\S*past\.ts:2: inserts into/m);
  });

  test('The command init links the model with a column for the id of Clerk, and overwrites nothing', async () => {
    const file = path.join(host.folder, `${definition.source}lib/identity.ts`);
    expect(await host.run('clerk-identity-link init')).toContain(`Not overwritten: ${file}`);
    rmSync(file);
    expect(await host.run('clerk-identity-link init')).toContain(`Wrote ${file}`);
    await host.run('tsc --noEmit');
  });
});
