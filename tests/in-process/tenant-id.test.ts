import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { signVerdict, VERDICT } from '#lib/idp/verdict';
import { lockInserts } from '../harness/dependencies/row-lock';
import { importAsProcess, startInProcess } from '../harness/in-process';

const { database, kv } = await startInProcess();

/** A UUID v7 that no row has. */
const OTHER_ID = '019a0000-0000-7000-8000-000000000000';
const key = (organization: string) => `auth:tenant-id-by-idp:${organization}`;
const cached = (organization: string) => kv.engine.call('GET', key(organization));
const rowsOf = async (organization: string) =>
  (
    await database.pool.query<{ id: string }>(
      'SELECT id FROM tenants WHERE identity_provider_organization_id = $1',
      [organization],
    )
  ).rows.map(({ id }) => id);

/** Loads the modules of the service as another process would. Returns a request of a member to a guarded route. */
const loadProcess = () =>
  importAsProcess(async () => {
    const [{ NextRequest }, { guardTenant }, { json }, { forget }] = await Promise.all([
      import('next/server'),
      import('#lib/guard-tenant'),
      import('#lib/http/route'),
      import('#lib/users/forget'),
    ]);
    const route = guardTenant((_request, { userId, tenantId }) => json({ userId, tenantId }));
    return {
      request: async (user: string, organization: string) => {
        const verdict = { user, organization: { id: organization, role: 'org:member' }, issuedAt: 0 };
        const headers = { [VERDICT]: signVerdict(verdict) };
        const request = new NextRequest('http://localhost:3000/things/v1/me', { headers });
        const response = await route(request, { params: Promise.resolve({}) });
        return { status: response.status, ...(await response.json()) };
      },
      forget: (user: string) => forget(user, 30, async () => undefined),
    };
  });

let service: Awaited<ReturnType<typeof loadProcess>>;

beforeEach(async () => {
  service = await loadProcess();
});
afterEach(async () => {
  kv.beforeCommand = async () => undefined;
  kv.proxy.onClientData = undefined;
  await database.proxy.treat('forward');
});

test('The first request of an organization creates its tenant and caches the id. A known tenant costs no statement and one request to the cache', async () => {
  const first = await service.request('user_first', 'org_first');
  expect([first.status, await rowsOf('org_first')]).toEqual([200, [first.tenantId]]);
  expect(await cached('org_first')).toBe(first.tenantId);
  let sent = '';
  kv.proxy.onClientData = (chunk) => {
    sent += chunk;
  };
  kv.takeCommands();
  database.takeStatements();
  expect(await service.request('user_first', 'org_first')).toEqual(first);
  expect(kv.takeCommands()).toEqual([
    ['GET', 'auth:user-id-by-idp:user_first'],
    ['GET', key('org_first')],
  ]);
  expect([sent.match(/POST /g), database.takeStatements()]).toEqual([['POST '], []]);
});

test('Of 100 first requests of 10 members in two processes, each gets the same tenant id, and there is one row', async () => {
  const members = Array.from({ length: 10 }, (_, index) => `user_member_${index}`);
  for (const member of members) await service.request(member, 'org_other');
  const inserts = await lockInserts(database, 'tenants');
  const requests = [service, await loadProcess()].flatMap(({ request }) =>
    Array.from({ length: 5 }, () => members.map((member) => request(member, 'org_raced'))).flat(),
  );
  const haveRaced = await inserts.waiting(2);
  await inserts.release();
  const ids = (await Promise.all(requests)).map(({ tenantId }) => tenantId);
  expect([haveRaced, ids.length]).toEqual([true, 100]);
  expect([...new Set(ids)]).toEqual(await rowsOf('org_raced'));
});

test('A forgotten user gets a 401, also in an organization with a cached tenant, and creates no tenant', async () => {
  await service.request('user_forgotten', 'org_known');
  await service.forget('user_forgotten');
  for (const organization of ['org_known', 'org_of_forgotten'])
    expect(await service.request('user_forgotten', organization)).toMatchObject({ status: 401 });
  expect(await rowsOf('org_of_forgotten')).toEqual([]);
});

test.each(['', '42', `"${OTHER_ID}"`, `${OTHER_ID} `, OTHER_ID.slice(1)])(
  'A cached tenant id that the service cannot have stored is a miss: %j',
  async (value) => {
    const { tenantId } = await service.request('user_first', 'org_of_values');
    await kv.engine.call('SET', key('org_of_values'), value);
    database.takeStatements();
    expect(await service.request('user_first', 'org_of_values')).toMatchObject({ status: 200, tenantId });
    expect([await cached('org_of_values'), database.takeStatements()]).toEqual([
      tenantId,
      [expect.stringMatching(/^SELECT/)],
    ]);
  },
);

test('Without the cache, the database supplies the tenant, and the service does not write to the cache', async () => {
  kv.takeCommands();
  kv.beforeCommand = () => Promise.reject(new Error('failed by a test'));
  const { status, tenantId } = await service.request('user_first', 'org_without_cache');
  expect([status, await rowsOf('org_without_cache')]).toEqual([200, [tenantId]]);
  expect(kv.takeCommands().map(([name]) => name)).toEqual(['GET', 'GET']);
});

test('Without the database, requests of a known tenant succeed, and those of a new one get a 500', async () => {
  const known = await service.request('user_first', 'org_of_outage');
  await database.proxy.treat('refuse');
  expect(await service.request('user_first', 'org_of_outage')).toEqual(known);
  expect(await service.request('user_first', 'org_of_outage_new')).toMatchObject({ status: 500 });
});

test('The migration gives each role the rights to tenants that the role has to users, so that an upgrade needs no other grant', async () => {
  const file = 'prisma/migrations/20261127000000_create_tenants/migration.sql';
  const client = await database.pool.connect();
  try {
    await client.query(`BEGIN; DROP TABLE tenants; CREATE ROLE "Reader of tenants"; CREATE ROLE writer_of_tenants;
      GRANT SELECT ON users TO "Reader of tenants"; GRANT SELECT, INSERT ON users TO writer_of_tenants`);
    await client.query(readFileSync(file, 'utf8'));
    const { rows } = await client.query(
      `SELECT grantee::regrole::text AS role, string_agg(privilege_type, ',' ORDER BY 1) AS rights
       FROM pg_class, aclexplode(relacl) WHERE oid = 'tenants'::regclass AND grantee <> relowner GROUP BY 1 ORDER BY 1`,
    );
    expect(rows).toEqual([
      { role: '"Reader of tenants"', rights: 'SELECT' },
      { role: 'writer_of_tenants', rights: 'INSERT,SELECT' },
    ]);
  } finally {
    client.release(true);
  }
});
