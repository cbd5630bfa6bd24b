import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { lockInserts, lockRow } from '../harness/dependencies/row-lock';
import { importAsProcess } from '../harness/in-process';
import { countOutcomes } from '../harness/outcomes';
import { inParallel } from '../harness/parallel';
import { startUsersCommand } from '../vitest/run-users-command';

// `users adopt` uses the external_id of users at the identity provider as their internal ids. `users publish` sets it.
const { database, kv, provider, environment, users } = await startUsersCommand();
const { adopt, closeDatabase, publish, resolveId } = await importAsProcess(async () => ({
  ...(await import('#lib/users/external-ids')),
  ...(await import('#lib/internal-id')),
  ...(await import('#lib/storage/database')),
}));
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
const rows = async () =>
  Object.fromEntries(
    (await database.pool.query('SELECT * FROM users')).rows.map((row) => [
      row.identity_provider_user_id,
      row.id,
    ]),
  );
const linkTo = (user: string, id: string) =>
  database.pool.query('INSERT INTO users VALUES ($1, $2)', [id, user]);

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
  // `users` resets the modules, and lookups then load a new one.
  await (await import('#lib/storage/database')).closeDatabase();
  isLimited = false;
  rejections = {};
  for (const { id } of provider.store.users.all()) provider.deleteUser(id);
  await database.pool.query('TRUNCATE users, forgotten_users CASCADE');
});

const waits: number[] = [];
const retryOptions = {
  seconds: 100_000,
  onWait: (_reason: string, seconds: number) => waits.push(seconds),
  sleep: async () => undefined,
};
const outcomesOf = (run: typeof adopt) => countOutcomes(run(retryOptions));

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
  await database.pool.query(`INSERT INTO previous_ids VALUES ('expired', $1, 'x', 'run', now())`, [linked]);
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
    const run = await users('adopt', ...args);
    expect(run).toMatchObject({ exit: 1, stdout });
    expect(run.stderr.trimEnd().split('\n').sort()).toEqual(problems.toSorted());
    expect(await rows()).toEqual(after);
  }
});

test('A rate limit skips no user of an adoption', async () => {
  const expected = Object.fromEntries(ids(600).map((id) => [id, randomUUID()]));
  for (const [id, externalId] of Object.entries(expected)) signUp(id, externalId);
  isLimited = true;
  expect(await outcomesOf(adopt)).toEqual({ adopted: 600 });
  expect(waits).toContain(7);
  expect(await rows()).toEqual(expected);
});

test('Beside first requests of the same users, an adoption gives each user one internal id, which is also the cached one', async () => {
  const all = ids(200);
  for (const id of all) signUp(id, randomUUID());
  // The adoption finds this user without a link, and then waits for the transaction that inserts it.
  const winner = await lockRow(database, 'user_199');
  const adoption = outcomesOf(adopt);
  expect(await winner.waiting(1)).toBe(true);
  const requests = inParallel(10, all.toReversed(), async (id) => {
    await resolveId('user', id, undefined);
  });
  await winner.commit();
  const counts = await adoption;
  await requests;
  expect(counts).toMatchObject({ 'not adopted': expect.any(Number) });
  expect(Object.values(counts).reduce((sum, count) => sum + count)).toBe(200);
  const linked = await rows();
  expect(Object.keys(linked).sort()).toEqual(all.toSorted());
  for (const id of all) expect(await kv.cachedId(id)).toBe(linked[id]);
});

test('An adoption does not link a user whom another transaction forgets after the check', async () => {
  signUp('raced', randomUUID());
  const inserts = await lockInserts(database);
  const adoption = outcomesOf(adopt);
  expect(await inserts.waiting(1)).toBe(true);
  await database.markForgotten('raced');
  await inserts.release();
  expect(await adoption).toEqual({ forgotten: 1 });
  expect(await rows()).toEqual({});
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
    `INSERT INTO previous_ids VALUES ('old_id', $1, 'moved', 'run', now()), ('other_old_id', $1, 'x', 'run', now())`,
    [linked['moved']],
  );
  await database.markForgotten('forgotten', former);
  expect(await users('publish', '--dry-run')).toMatchObject({
    exit: 1,
    stdout: '9 seen, 5 to publish, 0 already published, 1 not linked, 1 forgotten, 2 kept, 0 failed\n',
  });
  expect(updates.sent).toBe(0);
  rejections = { gone: 404, rejected: 422 };
  const { exit, stdout, stderr } = await users('publish');
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

test('After a publication with at most five updates in flight, an adoption into an empty database gives the same internal ids', async () => {
  for (const id of ids(30)) signUp(id, null);
  await database.link(...ids(30));
  const before = await rows();
  isLimited = true;
  expect(await outcomesOf(publish)).toEqual({ published: 30 });
  expect(updates).toMatchObject({ sent: 30, most: expect.toSatisfy((most) => most > 1 && most <= 5) });
  expect(await outcomesOf(publish)).toEqual({ 'already published': 30 });
  expect(updates.sent).toBe(30);
  await database.pool.query('TRUNCATE users CASCADE');
  expect(await outcomesOf(adopt)).toEqual({ adopted: 30 });
  expect(await rows()).toEqual(before);
});
