import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Kind } from '#lib/core/ports';
import { KINDS } from '#lib/ids/store';
import { lockInserts, lockRow } from '../harness/dependencies/row-lock';
import { importAsProcess } from '../harness/in-process';
import { countOutcomes } from '../harness/outcomes';
import { inParallel } from '../harness/parallel';
import { startLinksCommand } from '../vitest/run-links-command';
import { temporaryFolder } from '../vitest/temporary-folder';

// `users adopt` uses the external_id of users at the identity provider as their internal ids. `users publish` sets it. `tenants
// adopt` reads the internal ids of organizations from a file.
const { database, kv, provider, environment, run } = await startLinksCommand();
const { adopt, closeDatabase, deleteLink, providerUsers, publish, resolveId, waitForLongQueries } =
  await importAsProcess(async () => ({
    ...(await import('#lib/operator/delete-link')),
    ...(await import('#lib/operator/external-ids')),
    ...(await import('#lib/operator/paginate')),
    // `run` resets the modules, and the client of the provider is loaded on first use.
    client: await (await import('#lib/operator/paginate')).directory(),
    resolveId: (await import('#lib/link')).link.resolve,
    ...(await import('#lib/storage/database')),
  }));
waitForLongQueries();
afterAll(closeDatabase);

const template = provider.createUser({ email: 'template@private.example' });
provider.deleteUser(template.id);
let created = 0;
function signUp(id: string, externalId: string | null): void {
  created += 1;
  provider.store.users.put({ ...template, id, externalId, createdAt: Date.parse('2026-01-01') + created });
}
const externalIdOf = (id: string) => provider.store.users.get(id)?.externalId;
const ids = (count: number) => Array.from({ length: count }, (_, index) => `user_${index}`);
const rows = async (kind: Kind = 'user') => {
  const { table, column } = KINDS[kind];
  const found = await database.pool.query(`SELECT ${column} AS provided, id FROM ${table}`);
  return Object.fromEntries(found.rows.map(({ provided, id }) => [provided, id]));
};
const linkTo = (providerId: string, id: string, kind: Kind = 'user') =>
  database.pool.query(`INSERT INTO ${KINDS[kind].table} VALUES ($1, $2)`, [id, providerId]);

/** Updates (PATCH requests) since the start of the test, and the largest number of them in flight. */
const updates = { sent: 0, inFlight: 0, most: 0 };
/** Makes each third request to the provider fail with 429. */
let isLimited = false;
/** Statuses of the responses to the updates of these users. */
let rejections: Record<string, number> = {};

beforeEach(() => {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  Object.assign(updates, { sent: 0, inFlight: 0, most: 0 });
  const { fetch } = globalThis;
  let requests = 0;
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    requests += 1;
    if (isLimited && requests % 3 === 0)
      return Response.json({ errors: [] }, { status: 429, headers: { 'retry-after': '7' } });
    if (init?.method !== 'PATCH') return fetch(input, init);
    const status = rejections[String(input).split('/').at(-1) ?? ''];
    if (status !== undefined) return Response.json({ errors: [{ code: 'x' }] }, { status });
    updates.sent += 1;
    updates.inFlight += 1;
    updates.most = Math.max(updates.most, updates.inFlight);
    return fetch(input, init).finally(() => {
      updates.inFlight -= 1;
    });
  });
});

afterEach(async () => {
  vi.restoreAllMocks();
  // `run` resets the modules, and lookups then load a new one.
  await (await import('#lib/storage/database')).closeDatabase();
  isLimited = false;
  rejections = {};
  for (const { id } of provider.store.users.all()) provider.deleteUser(id);
  await database.pool.query('TRUNCATE users, tenants, pending_deletions, forgotten_users CASCADE');
});

const retryOptions = {
  seconds: 100_000,
  sleep: async () => undefined,
};
const adoptUsers = () =>
  countOutcomes(adopt('user', providerUsers(retryOptions), { by: 'me' }, retryOptions));
const publishUsers = () => countOutcomes(publish({ by: 'me' }, retryOptions));
/** Adopts users from the provider, or organizations from a map. */
function adoptEntries(kind: Kind, entries: Readonly<Record<string, string>>) {
  const adoptions = Object.entries(entries).map(([id, externalId]) => ({ id, externalId }));
  for (const { id, externalId } of kind === 'user' ? adoptions : []) signUp(id, externalId);
  return kind === 'user'
    ? adoptUsers()
    : countOutcomes(adopt('tenant', [adoptions], { by: 'me' }, retryOptions));
}

test('The adopt command links unlinked users to the UUID in their external_id, names each user that it leaves out for a reason, and prints no other external_id', async () => {
  const [fresh, taken, linked, other] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const [former, nil, max] = [
    randomUUID(),
    '00000000-0000-0000-0000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
  ];
  const odd = ['17', 'clh3x2k9a0000', randomUUID().toUpperCase(), `${randomUUID()} `, "'; DROP TABLE users"];
  const externalIds = {
    fresh,
    linked,
    moved: 'old_provider_id',
    plain: null,
    other,
    taken,
    former,
    nil,
    max,
    forgotten: randomUUID(),
    expired: randomUUID(),
  };
  for (const [id, externalId] of Object.entries(externalIds)) signUp(id, externalId);
  for (const [index, externalId] of odd.entries()) signUp(`odd_${index}`, externalId);
  await linkTo('linked', linked);
  await database.link('moved', 'other');
  await linkTo('user_at_another_instance', taken);
  await database.pool.query(`INSERT INTO previous_ids VALUES ('user', 'expired', $1, 'x', 'run', now())`, [
    linked,
  ]);
  await database.markForgotten('forgotten', former);
  const before = await rows();
  const problems = [
    'not adopted: other: the user is linked to another internal id',
    'not adopted: taken: external_id is the internal id of another user',
    'not adopted: former: external_id is the internal id of a forgotten user',
    'not adopted: nil: external_id is a UUID without or with all bits',
    'not adopted: max: external_id is a UUID without or with all bits',
    ...odd.map((_, index) => `not adopted: odd_${index}: external_id is not a UUID in lower case`),
  ];
  const rest = '1 without external_id, 2 forgotten, 10 not adopted\n';
  for (const [args, stdout, after] of [
    [['--dry-run'], `16 seen, 1 to adopt, 2 already linked, ${rest}`, before],
    [[], `16 seen, 1 adopted, 2 already linked, ${rest}`, { ...before, fresh }],
    [[], `16 seen, 0 adopted, 3 already linked, ${rest}`, { ...before, fresh }],
  ] as const) {
    const adoption = await run('user', 'adopt', ...args);
    expect(adoption).toMatchObject({ exit: 1, stdout });
    expect(adoption.stderr.trimEnd().split('\n').sort()).toEqual(problems.toSorted());
    expect(await rows()).toEqual(after);
  }
});

test('The adopt command links organizations without a tenant to the ids of the map, also forgotten ones, and names each line that it leaves out for a reason', async () => {
  const [fresh, back, linked, taken] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const map = path.join(temporaryFolder(), 'map.csv');
  const lines = [`fresh,${fresh}`, `back,${back}`, `linked,${linked}`, `taken,${taken}`, 'odd,17'];
  const others = ['other', 'leaving', 'twice', 'twice'].map((id) => `${id},${randomUUID()}`);
  writeFileSync(map, ['organization,id', ...lines, ...others].join('\n'));
  await linkTo('linked', linked, 'tenant');
  await linkTo('org_at_another_instance', taken, 'tenant');
  await database.of('tenant').link('other');
  await database.of('tenant').markForgotten('back');
  await database.pool.query(`INSERT INTO pending_deletions VALUES ('tenant', 'leaving', now())`);
  const before = await rows('tenant');
  for (const [args, figures, after] of [
    [['--dry-run'], '2 to adopt, 1 already linked', before],
    [[], '2 adopted, 1 already linked', { ...before, fresh, back }],
    [[], '0 adopted, 3 already linked', { ...before, fresh, back }],
  ] as const) {
    const adoption = await run('tenant', 'adopt', '--map', map, ...args);
    expect(adoption).toMatchObject({ exit: 1, stdout: `9 seen, ${figures}, 6 not adopted\n` });
    expect(adoption.stderr.trimEnd().split('\n').sort()).toEqual([
      'not adopted: leaving: its deletion is pending, or it is a previous id after its window',
      'not adopted: odd: the id is not a UUID in lower case',
      'not adopted: other: the organization is linked to another internal id (see `show`). To replace that tenant, forget it, and adopt again',
      'not adopted: taken: the id is the internal id of another organization',
      'not adopted: twice: id occurs twice',
      'not adopted: twice: id occurs twice',
    ]);
    expect(await rows('tenant')).toEqual(after);
  }
});

test.each(['user', 'tenant'] as const)(
  'Beside first requests of the same ids, an adoption gives each %s one internal id, which is also the cached one',
  async (kind) => {
    const all = ids(200);
    // The adoption finds this id without a link, and then waits for the transaction that inserts it.
    const winner = await lockRow(database, 'user_199', kind);
    const adoption = adoptEntries(kind, Object.fromEntries(all.map((id) => [id, randomUUID()])));
    expect(await winner.waiting(1)).toBe(true);
    // On a busy machine, a registration can exceed its deadline.
    const request = async (id: string): Promise<unknown> =>
      resolveId(kind, id, undefined).catch(() => request(id));
    const requests = inParallel(10, all.toReversed(), async (id) => void (await request(id)));
    await winner.commit();
    const counts = await adoption;
    await requests;
    expect(counts).toMatchObject({ 'not adopted': expect.any(Number) });
    expect(Object.values(counts).reduce((sum, count) => sum + count)).toBe(200);
    const linked = await rows(kind);
    expect(Object.keys(linked).sort()).toEqual(all.toSorted());
    for (const id of all) expect(await kv.cachedId(id, kind)).toBe(linked[id]);
  },
);

test.each([
  ['user', 'forgotten', () => database.markForgotten('raced')],
  [
    'tenant',
    'not adopted',
    () => database.pool.query(`INSERT INTO pending_deletions VALUES ('tenant', 'raced', now())`),
  ],
] as const)(
  'An adoption does not link a %s that another transaction forgets or deletes after the check',
  async (kind, outcome, forget) => {
    // An organization that is not adopted stays forgotten.
    if (kind === 'tenant') await database.of('tenant').markForgotten('raced');
    const inserts = await lockInserts(database, kind);
    const adoption = adoptEntries(kind, { raced: randomUUID() });
    expect(await inserts.waiting(1)).toBe(true);
    await forget();
    await inserts.release();
    expect(await adoption).toEqual({ [outcome]: 1 });
    expect(await rows(kind)).toEqual({});
    const tombstones = 'SELECT FROM forgotten_users WHERE id_hash = forgotten_hash($1, $2)';
    expect((await database.pool.query(tombstones, [kind, 'raced'])).rowCount).toBe(1);
  },
);

test('A deletion that begins beside an adoption of the same organization deletes the adopted tenant', async () => {
  const inserts = await lockInserts(database, 'tenant');
  const adoption = adoptEntries('tenant', { raced: randomUUID() });
  expect(await inserts.waiting(1)).toBe(true);
  const deletion = deleteLink('tenant', 'raced', 1, { by: 'me' });
  expect(await database.areBlocked(2)).toBe(true);
  await inserts.release();
  expect([await adoption, await deletion]).toEqual([{ adopted: 1 }, ['raced']]);
  expect(await rows('tenant')).toEqual({});
});

test('A command that stops early exits with 1', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json({}, { status: 401 }));
  const stderr = expect.stringMatching(/^Stopped early: .*\nRun the same command again\n$/);
  expect(await run('user', 'adopt')).toMatchObject({ exit: 1, stderr });
});

test('If the search for collisions stops early, the relink command moves no id', async () => {
  await database.link(...ids(201));
  const map = path.join(temporaryFolder(), 'relink.csv');
  writeFileSync(
    map,
    ids(201)
      .map((id) => `${id},new_${id}`)
      .join('\n'),
  );
  let batches = 0;
  database.proxy.onClientData = (chunk) => {
    if (chunk.includes('lock_timeout')) batches += 1;
    if (batches === 2) void database.proxy.treat('reset').then(() => database.proxy.treat('forward'));
    if (batches === 2) database.proxy.onClientData = undefined;
  };
  const relink = await run('user', 'relink', '--map', map, '--retry-seconds', '0');
  expect(relink).toMatchObject({ exit: 1, stderr: expect.stringContaining('Stopped early') });
  expect(await database.users('new_%')).toEqual([]);
});

test('The publish command sets each external_id that no other system has set to the internal id, and names the users that it leaves out', async () => {
  const former = randomUUID();
  const externalIds = {
    empty: null,
    moved: 'old_id',
    former,
    kept: 'id_of_a_shop',
    foreign: 'other_old_id',
    unlinked: null,
    forgotten: null,
    gone: null,
    rejected: null,
  };
  for (const [id, externalId] of Object.entries(externalIds)) signUp(id, externalId);
  await database.link('empty', 'moved', 'former', 'kept', 'foreign', 'gone', 'rejected');
  const linked = await rows();
  await database.pool.query(
    `INSERT INTO previous_ids VALUES ('user', 'old_id', $1, 'moved', 'run', now()), ('user', 'other_old_id', $1, 'x', 'run', now())`,
    [linked['moved']],
  );
  await database.markForgotten('forgotten', former);
  expect(await run('user', 'publish', '--dry-run')).toMatchObject({
    exit: 1,
    stdout: '9 seen, 5 to publish, 0 already published, 1 not linked, 1 forgotten, 2 kept, 0 failed\n',
  });
  expect(updates.sent).toBe(0);
  rejections = { gone: 404, rejected: 422 };
  const { exit, stdout, stderr } = await run('user', 'publish');
  expect({ exit, stdout }).toEqual({
    exit: 1,
    stdout: '9 seen, 3 published, 0 already published, 1 not linked, 1 forgotten, 2 kept, 2 failed\n',
  });
  expect(stderr.trimEnd().split('\n').sort()).toEqual([
    'failed: gone: the identity provider responds with status 404',
    'failed: rejected: the identity provider responds with status 422',
    'kept: foreign: external_id has another value',
    'kept: kept: external_id has another value',
  ]);
  expect(['empty', 'moved', 'former', 'kept'].map(externalIdOf)).toEqual([
    linked['empty'],
    linked['moved'],
    linked['former'],
    'id_of_a_shop',
  ]);
});

test('The publish command records the internal id of a user whose previous id the provider still lists', async () => {
  signUp('previous', null);
  await database.link('present');
  const { present } = await rows();
  await database.pool.query(
    `INSERT INTO previous_ids VALUES ('user', 'previous', $1, 'present', 'run', '2099-01-01Z')`,
    [present],
  );
  expect(await publishUsers()).toEqual({ published: 1 });
  expect(externalIdOf('previous')).toBe(present);
  const changes = `SELECT internal_id AS id FROM link_changes
    WHERE operation = 'publish' AND id_hash = left(encode(forgotten_hash('user', 'previous'), 'hex'), 16)`;
  expect((await database.pool.query(changes)).rows).toEqual([{ id: present }]);
});

test('If the database fails after the commit of an adoption, the adopted users still count as adopted', async () => {
  const { proxy } = database;
  for (const id of ids(2)) signUp(id, randomUUID());
  let isCommitted = false;
  proxy.onClientData = (chunk) => {
    if (isCommitted) {
      proxy.onClientData = undefined;
      void proxy.treat('reset').then(() => proxy.treat('forward'));
    } else isCommitted = chunk.includes('COMMIT\0');
  };
  const counts = await adoptUsers();
  proxy.onClientData = undefined;
  expect([isCommitted, counts]).toEqual([true, { adopted: 2 }]);
});

test('After a publication with at most five updates in flight, an adoption into an empty database gives the same internal ids', async () => {
  for (const id of ids(30)) signUp(id, null);
  await database.link(...ids(30));
  const before = await rows();
  isLimited = true;
  expect(await publishUsers()).toEqual({ published: 30 });
  expect(updates).toMatchObject({ sent: 30, most: expect.toSatisfy((most) => most > 1 && most <= 5) });
  expect(await publishUsers()).toEqual({ 'already published': 30 });
  expect(updates.sent).toBe(30);
  await database.pool.query('TRUNCATE users CASCADE');
  expect(await adoptUsers()).toEqual({ adopted: 30 });
  expect(await rows()).toEqual(before);
});
