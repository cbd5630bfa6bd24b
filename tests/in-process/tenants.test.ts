import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { NextRequest } from 'next/server';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { signVerdict, VERDICT } from '#lib/http/signed-verdict';
import { cacheKey } from '../harness/dependencies/kv';
import { lockInserts, pauseInserts } from '../harness/dependencies/row-lock';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { stubProvider } from '../harness/provider-stub';

// A tenant is the row of an organization. The first request of a member to a route that `guardTenant` guards creates it.
const { database, kv } = await startInProcess();
const { pool } = database;
const { idsOf } = database.of('tenant');
const provider = stubProvider();
afterAll(() => provider.restore());

/** Loads the modules of the service again, as a separate process would. */
const loadProcess = () =>
  importAsProcess(async () => ({
    ...(await import('#lib/base/log')),
    ...(await import('#lib/guard-tenant')),
    ...(await import('#lib/ids/cache')),
    ...(await import('#lib/operator/external-ids')),
    ...(await import('#lib/operator/forget')),
    ...(await import('#lib/operator/relink')),
    ...(await import('../../events/forget-deleted-organization')),
  }));
const [one, other] = [await loadProcess(), await loadProcess()];

/** Sends a request of a member. By default, the session token is older than all deletions. */
async function visit(user: string, organization: string, { guardTenant } = one, issuedAt = 0) {
  const route = guardTenant((_request, { userId, tenantId }) => Response.json({ userId, tenantId }));
  const verdict = { user, organization: { id: organization, role: 'org:member' }, issuedAt };
  const request = new NextRequest('http://localhost/v1', { headers: { [VERDICT]: signVerdict(verdict) } });
  const response = await route(request, { params: Promise.resolve({}) });
  return { status: response.status, ...(await response.json()) };
}
/**
 * Sends a request of each of ten members, half of them to each of two processes. Returns the different results: the tenant id, or
 * the status of a response without one.
 */
async function visitAll(organization: string, issuedAt?: number): Promise<unknown[]> {
  const responses = Array.from({ length: 10 }, (_, index) =>
    visit(`user_member_${index}`, organization, index % 2 === 0 ? one : other, issuedAt),
  );
  return [...new Set((await Promise.all(responses)).map(({ status, tenantId }) => tenantId ?? status))];
}

const retryOptions = { seconds: 20 };
const move = async (oldId: string, newId: string) => {
  const options = { kind: 'tenant', run: 'run of a test', by: 'me', days: 30, retryOptions } as const;
  return (await one.relink([{ line: 1, oldId, newId }], options).next()).value?.[0]?.outcome;
};

/** Delivers organization.deleted. */
const deletion = (id: string) =>
  one.forgetDeletedOrganization({ id }, { messageId: `msg_${id}`, occurredAt: Date.now() });

afterEach(async () => {
  kv.beforeCommand = async () => undefined;
  kv.proxy.onClientData = undefined;
  await database.proxy.treat('forward');
});

test('The first request of an organization costs two statements, and a request of a known tenant no statement and one request to the cache', async () => {
  await visit('user_first', 'org_other');
  database.takeStatements();
  const first = await visit('user_first', 'org_first');
  expect(database.takeVerbs()).toEqual(['SELECT', 'INSERT']);
  let sent = '';
  kv.proxy.onClientData = (chunk) => {
    sent += chunk;
  };
  kv.takeCommands();
  database.takeStatements();
  expect(await visit('user_first', 'org_first')).toEqual(first);
  expect(kv.takeCommands().map(([name]) => name)).toEqual(['GET', 'GET']);
  expect([sent.match(/POST /g), database.takeStatements()]).toEqual([['POST '], []]);
});

test('Of 100 first requests of 10 members in two processes during moves of their organization and back, each gets the same tenant id, which is also the only row and the only cached id', async () => {
  await visitAll('org_other');
  const inserts = await lockInserts(database, 'tenant');
  const requests = [visitAll('org_raced'), visitAll('org_raced')];
  expect(await inserts.waiting(2)).toBe(true);
  await inserts.release();
  const outcomes: unknown[] = [];
  for (let round = 0; round < 4; round += 1) {
    requests.push(visitAll('org_raced'));
    outcomes.push(await move('org_raced', 'org_moved'));
    requests.push(visitAll('org_raced'));
    outcomes.push(await move('org_moved', 'org_raced'));
  }
  const ids = [...new Set((await Promise.all(requests)).flat())];
  expect(outcomes).toContain('moved');
  expect([await idsOf('org_raced'), await idsOf('org_moved'), ids.length]).toEqual([ids, [], 1]);
  for (const id of ['org_raced', 'org_moved'])
    expect([...ids, null]).toContain(await kv.cachedId(id, 'tenant'));
});

test('After an organization is forgotten and adopts an existing id, every request of two processes gets this id, also if a lookup of the forgotten tenant is still in flight', async () => {
  const [fresh] = await visitAll('org_swapped');
  await kv.engine.call('DEL', cacheKey('org_swapped', 'tenant'));
  let release = () => {};
  const waits = [new Promise<void>((resolve) => (release = resolve))];
  kv.takeCommands();
  // A lookup has read the row, and caches its id only during the pause of the deletion.
  kv.beforeCommand = async (command) => (command.toUpperCase() === 'SET' ? waits.pop() : undefined);
  const inFlight = visit('user_member_0', 'org_swapped', other);
  await expect.poll(() => kv.takeCommands().flat()).toContain('SET');
  await one.forget('tenant', 'org_swapped', 30, { by: 'me' }, async () => {
    release();
    expect(await inFlight).toMatchObject({ tenantId: fresh });
    expect(await kv.cachedId('org_swapped', 'tenant')).toBeNull();
  });
  expect(await visitAll('org_swapped')).toEqual([403]);
  const adoption = { id: 'org_swapped', externalId: randomUUID() };
  await one.adopt('tenant', [[adoption]], { by: 'me' }, retryOptions).next();
  expect(await visitAll('org_swapped')).toEqual([adoption.externalId]);
});

test('After organization.deleted, requests with any token get a 403 and create no tenant, and the due deletion removes the tenant of first requests that began earlier, with its rows', async () => {
  await visitAll('org_other');
  const read = await other.readCachedId('tenant', 'org_deleted');
  const { resume } = await pauseInserts(database, 'tenant');
  const earlier = visitAll('org_deleted');
  expect(await database.areBlocked(2)).toBe(true);
  const event = deletion('org_deleted');
  expect(await database.areBlocked(3)).toBe(true);
  const beside = visitAll('org_deleted');
  await resume();
  await Promise.all([event, deletion('org_unknown')]);
  const [tenantId] = await idsOf('org_deleted');
  const results = new Set([...(await earlier), ...(await beside), 403]);
  expect(results).toEqual(new Set([tenantId, 403]));
  // A lookup that has read the row before the event does not cache its id.
  if (read.outcome === 'miss') await read.put(String(tenantId));
  const info = vi.spyOn(one.log, 'info');
  for (const id of ['org_deleted', 'org_unknown']) expect(await visitAll(id)).toEqual([403]);
  const line = expect.objectContaining({ reason: 'forgotten-organization' });
  expect(info).toHaveBeenLastCalledWith(line, 'request');

  await pool.query('CREATE TABLE projects (tenant uuid REFERENCES tenants (id) ON DELETE CASCADE)');
  await pool.query('INSERT INTO projects VALUES ($1)', [tenantId]);
  await pool.query('UPDATE pending_deletions SET due_at = now()');
  for await (const step of one.forgetDue('tenant', 30, { by: 'me' }, retryOptions, async () => undefined))
    expect(step.result).toBe('forgotten');
  expect((await pool.query('SELECT FROM projects')).rows).toEqual([]);
  for (const id of ['org_deleted', 'org_unknown']) {
    expect(await visitAll(id, Date.now() / 1000 + 60)).toEqual([403]);
    expect([await idsOf(id), await kv.cachedId(id, 'tenant')]).toEqual([[], null]);
  }
});

test('If the cache does not respond to organization.deleted, the delivery fails, and its repetition makes requests of a cached tenant get a 403', async () => {
  await visit('user_first', 'org_cached');
  await kv.proxy.treat('refuse');
  await expect(deletion('org_cached')).rejects.toThrow('The cache does not respond');
  await kv.proxy.treat('forward');
  await deletion('org_cached');
  expect(await visit('user_first', 'org_cached')).toMatchObject({ status: 403 });
});

test('After organization.deleted, a previous id of the organization gets a 403 too, and after the event for a previous id only that one', async () => {
  for (const [oldId, newId, deleted, results] of [
    ['org_a', 'org_b', 'org_b', [403, 403]],
    ['org_c', 'org_d', 'org_c', [403, expect.any(String)]],
  ] as const) {
    await visitAll(oldId);
    await move(oldId, newId);
    await visitAll(oldId);
    await deletion(deleted);
    for (const isCached of [true, false]) {
      if (!isCached) await one.uncache('tenant', [oldId, newId]);
      expect([...(await visitAll(oldId)), ...(await visitAll(newId))]).toEqual(results);
    }
  }
});

test('A lookup of a tenant does not wait for the deletion of its organization', async () => {
  const [tenantId] = await visitAll('org_locked');
  await one.uncache('tenant', ['org_locked']);
  const client = await pool.connect();
  try {
    await client.query(`BEGIN; SELECT pg_advisory_xact_lock(link_lock('tenant', 'org_locked'))`);
    expect(await visitAll('org_locked')).toEqual([tenantId]);
  } finally {
    client.release(true);
  }
});

test('An organization whose id is the text of a forgotten user id gets a tenant, and the reverse', async () => {
  const pause = async () => undefined;
  await visit('org_text', 'org_other');
  await one.forget('user', 'org_text', 30, { by: 'me' }, pause);
  expect(await visit('org_text', 'org_other')).toMatchObject({ status: 401 });
  expect(await visit('user_first', 'org_text')).toMatchObject({ status: 200 });
  await visit('user_first', 'user_text');
  await one.forget('tenant', 'user_text', 30, { by: 'me' }, pause);
  expect(await visit('user_first', 'user_text')).toMatchObject({ status: 403 });
  expect(await visit('user_text', 'org_other')).toMatchObject({ status: 200 });
});

test('The migrations give each role of release 1.0.0 its rights to users also to tenants, and a reader of users also previous ids', async () => {
  const client = await database.pool.connect();
  try {
    await client.query(`BEGIN; DROP SCHEMA public CASCADE; CREATE SCHEMA public;
      CREATE ROLE "Reader of tenants"; CREATE ROLE writer_of_tenants`);
    for (const name of readdirSync('prisma/migrations').filter((each) => /^\d/.test(each))) {
      await client.query(readFileSync(`prisma/migrations/${name}/migration.sql`, 'utf8'));
      if (name.endsWith('create_users'))
        await client.query(`GRANT SELECT ON users TO "Reader of tenants";
          GRANT SELECT, INSERT ON users TO writer_of_tenants`);
    }
    const { rows } = await client.query(
      `SELECT concat_ws(' ', relname, grantee::regrole, string_agg(privilege_type, ',' ORDER BY privilege_type)) AS granted
       FROM pg_class, aclexplode(relacl) WHERE relnamespace = 'public'::regnamespace AND relname <> 'users' AND grantee <> relowner
       GROUP BY relname, grantee ORDER BY 1`,
    );
    expect(rows.map(({ granted }) => granted)).toEqual([
      'previous_ids "Reader of tenants" SELECT',
      'previous_ids writer_of_tenants SELECT',
      'tenants "Reader of tenants" SELECT',
      'tenants writer_of_tenants INSERT,SELECT',
    ]);
  } finally {
    client.release(true);
  }
});
