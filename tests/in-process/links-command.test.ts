import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Kind } from '#lib/core/ports';
import { KINDS } from '#lib/ids/store';
import { runLinksCommand, startLinksCommand } from '../vitest/run-links-command';
import { temporaryFolder } from '../vitest/temporary-folder';

// Tests of the commands for one user or organization, and of `due`. tests/in-process/forgotten.test.ts checks that a forgotten
// user is not linked again, and tests/in-process/pending-deletions.test.ts which deletions are due.

/** Lengths of the pauses in milliseconds. The mock shortens each pause to at most a millisecond. */
const { pauses } = vi.hoisted(() => ({ pauses: Array.of<number | undefined>() }));
vi.mock('node:timers/promises', async (original) => {
  const timers = await original<typeof import('node:timers/promises')>();
  const setTimeout = (milliseconds?: number) => {
    pauses.push(milliseconds);
    return timers.setTimeout(1);
  };
  return { ...timers, setTimeout };
});

/** A provider of ids that begin with its name. */
vi.mock('#providers', () => ({
  providers: [
    {
      name: 'other',
      has: async (_kind: string, ids: string[]) => ids.filter((id) => id.startsWith('other_')),
    },
    { name: 'silent' },
  ],
}));

const { database, kv, provider, environment, run } = await startLinksCommand();
const { pool } = database;
const folder = temporaryFolder();
const { id: createdBy } = provider.createUser({ email: 'owner@private.example' });

/** Creates a user or an organization at the provider that is linked and has a cached id. Returns both ids. */
async function signUp(kind: Kind, name: string) {
  const email = `${name}@private.example`;
  const isUser = kind === 'user';
  const { id } = isUser ? provider.createUser({ email }) : provider.createOrganization({ name, createdBy });
  await database.of(kind).link(id);
  const [internalId = ''] = await database.of(kind).idsOf(id);
  await kv.cacheId(id, internalId, kind);
  return { id, internalId };
}

afterEach(() => pool.query('TRUNCATE pending_deletions').then(() => undefined));

describe.each([
  ['user', 'user'],
  ['tenant', 'organization'],
] as const)('npm run %ss', (kind, noun) => {
  const { column, table } = KINDS[kind];
  const { idsOf, link } = database.of(kind);
  const command = (...args: string[]) => run(kind, ...args);
  /** Stores a pending deletion, as the handlers in events/ do. */
  const scheduleDeletion = (id: string, due: string) =>
    pool.query(`INSERT INTO pending_deletions VALUES ($1, $2, ${due})`, [kind, id]);
  const pending = async () =>
    (await pool.query('SELECT provider_id AS id FROM pending_deletions ORDER BY 1')).rows.map(({ id }) => id);

  test('The show command finds a user or tenant by either id', async () => {
    const { id } = await signUp(kind, 'shown');
    const internalId = '019a0000-0000-7000-8000-000000000001';
    await pool.query(`UPDATE ${table} SET id = $1 WHERE ${column} = $2`, [internalId, id]);
    await kv.cacheId(id, internalId, kind);
    const { exit, stdout } = await command('show', internalId);
    expect(exit).toBe(0);
    expect(stdout).toMatch(
      new RegExp(
        `^internal id +${internalId}\nlinked +20\\S+Z\nprovider's id +${id}\ncache +contains the internal id\nClerk +has this ${noun}, created at 20\\S+Z\n$`,
      ),
    );
    expect((await command('show', id)).stdout).toBe(stdout);
  });

  test('The show command reports an id without a row as not linked, and marks its cached id as a mismatch', async () => {
    await kv.cacheId('id_unknown', '019a0000-0000-7000-8000-000000000000', kind);
    const { exit, stdout } = await command('show', 'id_unknown');
    expect(exit).toBe(1);
    expect(stdout).toMatch(
      new RegExp(
        `internal id +none.*\n.*\ncache +CONTAINS AN ID, BUT THE ${noun.toUpperCase()} IS NOT LINKED: 019a\\S+\nClerk +has no such ${noun}\n$`,
        's',
      ),
    );
  });

  test('The forget command deletes the row and the cached id, and the remember command the entry of the forgotten id', async () => {
    const { id } = await signUp(kind, 'forgotten');
    pauses.length = 0;
    const { exit, stdout } = await command('forget', id, '--yes');
    expect([exit, pauses]).toEqual([0, [9_000]]);
    expect(stdout).toContain(`Clerk still has this ${noun}`);
    expect(stdout).toMatch(new RegExp(`This ${noun} no longer has a row or a cached id\\.\n$`));
    expect(stdout).not.toContain('@');
    expect([await idsOf(id), await kv.cachedId(id, kind)]).toEqual([[], null]);
    expect(await command('show', id)).toMatchObject({
      exit: 1,
      stdout: expect.stringMatching(/\nforgotten +until 20\S+Z\n/),
    });
    expect(await command('remember', id)).toMatchObject({ exit: 0 });
    expect((await command('show', id)).stdout).not.toContain('forgotten');
  });

  test('The show, remember and forget commands find a pending deletion by any id of the user or tenant', async () => {
    const oldId = 'id_before_a_relink';
    const { id, internalId } = await signUp(kind, 'relinked');
    const previous = `INSERT INTO previous_ids VALUES ($1, $2, $3, $4, 'run', now() + interval '1 day')`;
    await pool.query(previous, [kind, oldId, internalId, id]);
    await scheduleDeletion(oldId, `'2099-01-01Z'`);
    for (const name of kind === 'user' ? ['show', 'export'] : ['show'])
      expect((await command(name, id)).stdout).toContain('2099-01-01T00:00:00.000Z');
    expect(await command('remember', id)).toMatchObject({
      exit: 0,
      stdout: `The pending deletion of this ${noun} is cancelled.\n`,
    });
    expect(await pending()).toEqual([]);
    await scheduleDeletion(oldId, `'2099-01-01Z'`);
    expect(await command('forget', id, '--yes')).toMatchObject({ exit: 0 });
    expect(await pending()).toEqual([]);
  });

  test('The relink command with --skip-collisions names an id that has signed in already, moves the others, and can be rolled back', async () => {
    await link('clerk_1', 'clerk_2', 'new_2');
    const [[first], [second]] = [await idsOf('clerk_1'), await idsOf('clerk_2')];
    const map = path.join(folder, `${kind}.csv`);
    writeFileSync(map, 'old,new\nclerk_1,new_1\nclerk_2,new_2\n');
    expect(await command('relink', '--map', map)).toMatchObject({ exit: 1 });
    expect(await idsOf('clerk_1')).toEqual([first]);
    const { exit, stdout } = await command('relink', '--map', map, '--skip-collisions');
    expect(stdout).toMatch(
      /^line 3: new id is linked to another internal id: clerk_2 -> new_2\. .*\n2 lines/,
    );
    expect(stdout).toContain('\n2 lines, 1 moved, 0 already moved, 1 collisions\n');
    expect([exit, await idsOf('new_1'), await idsOf('clerk_2')]).toEqual([1, [first], [second]]);
    const undo = /--rollback (\S+)/.exec(stdout)?.[1] ?? '';
    expect(await command('relink', '--rollback', undo)).toMatchObject({ exit: 0 });
    expect(await idsOf('clerk_1')).toEqual([first]);
  });

  test('The forget command of an id without a row and without an entry exits with 1 and stores nothing', async () => {
    expect(await command('forget', 'id_unused', '--yes')).toMatchObject({
      exit: 1,
      stdout: 'Nothing was deleted, because there is neither a row nor an entry for this id.\n',
    });
    expect(await command('show', 'id_unused')).toMatchObject({
      stdout: expect.not.stringContaining('forgotten'),
    });
  });

  test('The forget command deletes nothing without a confirmation, with invalid arguments or an ambiguous id, or if the cache does not respond', async () => {
    const { id, internalId } = await signUp(kind, 'staying');
    await link(internalId);
    const attempts: [args: string[], exit: number, message: string][] = [
      [[id], 2, 'Not a terminal: pass --yes.'],
      [['', '--yes'], 2, 'Invalid id.'],
      [['x'.repeat(256), '--yes'], 2, 'Invalid id.'],
      [['019a0000-0000-7000-8000-000000000000', '--yes'], 2, `No ${noun} has this internal id.`],
      [[internalId, '--yes'], 1, "Pass the provider's id of A or the internal id of B."],
    ];
    for (const [args, exit, message] of attempts) {
      const stderr = expect.stringContaining(message);
      expect(await command('forget', ...args)).toMatchObject({ exit, stderr });
    }
    const withoutCache = { ...environment, KV_REST_API_URL: 'http://127.0.0.1:1' };
    expect(await runLinksCommand(kind, ['forget', id, '--yes'], withoutCache)).toMatchObject({
      exit: 1,
      stderr: 'The cache does not respond. Nothing was deleted.\n',
    });
    expect(await idsOf(id)).toEqual([internalId]);
  });

  test('Without --yes, the forget command deletes only after the operator has typed yes', async () => {
    const { id, internalId } = await signUp(kind, 'confirmed');
    const { stdin } = process;
    onTestFinished(() => void Object.defineProperty(process, 'stdin', { value: stdin }));
    for (const [answer, exit, rows] of [
      ['no', 1, [internalId]],
      ['', 1, [internalId]],
      ['y', 1, [internalId]],
      ['yes', 0, []],
    ] as const) {
      const value = Object.assign(Readable.from([`${answer}\n`]), { isTTY: true });
      Object.defineProperty(process, 'stdin', { value, configurable: true });
      expect([answer, (await command('forget', id)).exit, await idsOf(id)]).toEqual([answer, exit, rows]);
    }
  });

  test('The due command deletes the row and the cached id of each deletion that is due, and prints a receipt with the hash of the forgotten id', async () => {
    const gone = await signUp(kind, 'due');
    const restored = await signUp(kind, 'restored');
    const kept = await signUp(kind, 'kept');
    for (const { id } of [gone, kept]) provider.store[kind === 'user' ? 'users' : 'organizations'].delete(id);
    for (const { id } of [gone, restored, kept]) await scheduleDeletion(id, `now() - interval '1 minute'`);
    await scheduleDeletion('id_not_due', `now() + interval '1 hour'`);
    await pool.query(`CREATE TABLE orders_kept (id UUID NOT NULL REFERENCES ${table} (id));
    INSERT INTO orders_kept VALUES ('${kept.internalId}')`);
    const { exit, stdout, stderr } = await command('due');
    expect({ exit, stderr }).toEqual({ exit: 1, stderr: '' });
    const { rows } = await pool.query(
      `SELECT encode(id_hash, 'hex') AS hash FROM forgotten_users WHERE id_hash = forgotten_hash($1, $2)`,
      [kind, gone.id],
    );
    expect(stdout).toContain(`${rows[0].hash.slice(0, 16)} (${gone.internalId})`);
    // The order depends on the random ids of the provider.
    const receipts = stdout.trimEnd().split('\n');
    for (const [{ internalId }, outcome] of [
      [gone, 'forgotten'],
      [restored, 'kept, because this id exists again at Clerk'],
      [kept, 'pending, because of an error: .* rows of the table orders_kept .*'],
    ] as const)
      expect(receipts).toContainEqual(
        expect.stringMatching(new RegExp(`^20\\S+Z [0-9a-f]{16} \\(${internalId}\\) ${outcome}$`)),
      );
    expect(receipts.at(-1)).toBe('3 due, 1 forgotten, 1 kept, 1 pending');
    expect(stdout).not.toMatch(/(?:user|org)_|@/);
    expect([await idsOf(gone.id), await kv.cachedId(gone.id, kind)]).toEqual([[], null]);
    expect(await pending()).toEqual(['id_not_due', kept.id]);
    await pool.query('DROP TABLE orders_kept');
    expect(await command('due')).toMatchObject({
      exit: 0,
      stdout: expect.stringMatching(/\n1 due, 1 forgotten, /),
    });
  });
});

test('The forget command deletes the published external_id, and the export command prints until when a user is forgotten', async () => {
  const { id, internalId } = await signUp('user', 'published');
  expect(await run('user', 'publish')).toMatchObject({ exit: 0 });
  expect(provider.store.users.get(id)?.externalId).toBe(internalId);
  const { stdout } = await run('user', 'forget', id, '--yes');
  expect(stdout).toMatch(/\nThe external_id .* is removed\.\n$/);
  expect(provider.store.users.get(id)?.externalId).toBeNull();
  const exported = await run('user', 'export', id);
  expect(exported.exit).toBe(1);
  expect(JSON.parse(exported.stdout)).toMatchObject({ forgottenUntil: expect.stringMatching(/^20/) });
});

test('The check command counts the differences, and prints their ids with --ids. The check, due and forget commands query the other providers that tell which ids they have, and name them', async () => {
  await database.link('other_ada', 'gone_ada', 'gone\nlines\u001b[2J');
  const { id: unlinked } = provider.createUser({ email: 'unlinked@private.example' });
  const counts =
    /^\d+ users at Clerk, [1-9]\d* of them not linked, \d+ forgotten\n\d+ rows, [1-9]\d* of them not at Clerk or other\n$/m;
  expect(await run('user', 'check')).toMatchObject({ exit: 1, stdout: expect.stringMatching(counts) });
  const checked = await run('user', 'check', '--ids');
  expect(checked.stdout).toMatch(counts);
  expect(checked.stdout).toContain(`not linked: ${unlinked}\n`);
  expect(checked.stdout).toMatch(/\nnot at Clerk or other: gone_ada \(.*\)\n/);
  expect(checked.stdout).toMatch(/\nnot at Clerk or other: "gone\\nlines\\u001b\[2J" \(/);
  expect(checked.stdout).not.toContain('other_ada');
  for (const id of ['other_ada', 'gone_ada'])
    await pool.query("INSERT INTO pending_deletions VALUES ('user', $1, now() - interval '1 minute')", [id]);
  const { stdout } = await run('user', 'due');
  expect(stdout).toContain(' kept, because this id exists again at other\n');
  expect(stdout).toContain('2 due, 1 forgotten, 1 kept, 0 pending');
  expect((await run('user', 'forget', 'other_ada', '--yes')).stdout).toContain('other still has this user');
  expect((await run('user', 'forget', 'gone_ada', '--yes')).stdout).not.toContain('still has');
});

test('If no provider can tell which users it has, there is neither a check nor a due command, and the forget command names no provider', async () => {
  await database.link('unasked');
  await pool.query("INSERT INTO pending_deletions VALUES ('user', 'unasked', now() - interval '1 minute')");
  vi.doMock('#lib/main-provider', () => ({ mainProvider: { name: 'Pages' } }));
  vi.doMock('#providers', () => ({ providers: [{ name: 'silent' }] }));
  for (const name of ['check', 'due']) {
    const stderr = expect.stringContaining(`unknown command '${name}'`);
    expect(await run('user', name)).toMatchObject({ exit: 2, stdout: '', stderr });
  }
  expect(await database.idsOf('unasked')).toHaveLength(1);
  expect((await run('user', 'forget', 'unasked', '--yes')).stdout).toContain(
    'no such user at a provider with `has`.',
  );
});
