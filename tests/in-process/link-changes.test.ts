import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { KINDS, type Kind } from '#lib/ids/kinds';
import { importAsProcess } from '../harness/in-process';
import { startLinksCommand } from '../vitest/run-links-command';
import { temporaryFolder } from '../vitest/temporary-folder';

// Each operation that changes which internal id belongs to an id of the provider adds rows to the table `link_changes`.

vi.mock('node:timers/promises', async (original) => ({
  ...(await original<typeof import('node:timers/promises')>()),
  setTimeout: async () => undefined,
}));

const { database, provider, run } = await startLinksCommand();
const { pool } = database;
const { id: createdBy } = provider.createUser({ email: 'owner@private.example' });
const root = temporaryFolder();
const service = await importAsProcess(async () => ({
  ...(await import('#lib/operator/pending-deletions')),
  ...(await import('#lib/storage/database')),
}));

function writeMap(...lines: string[]): string {
  const file = path.join(root, `${randomUUID()}.csv`);
  writeFileSync(file, lines.join('\n'));
  return file;
}
/** Creates a user or an organization that is not linked. The user has the given `external_id`. */
function createAtProvider(kind: Kind, name: string, externalId: string): string {
  if (kind === 'tenant') return provider.createOrganization({ name, createdBy }).id;
  const user = provider.createUser({ email: `${randomUUID()}@private.example` });
  return provider.store.users.put({ ...user, externalId }).id;
}
const schedule = (kind: Kind, id: string) =>
  service.database().$transaction((transaction) => service.scheduleDeletion(kind, transaction, id, 0));

const Changes = z.array(
  z.strictObject({
    changedAt: z.iso.datetime(),
    operation: z.string(),
    internalId: z.uuid().nullable(),
    idHash: z
      .string()
      .regex(/^[0-9a-f]{16}$/)
      .nullable(),
    run: z.string().nullable(),
    counts: z.record(z.string(), z.number()).nullable(),
    by: z.string(),
    reason: z.string().nullable(),
  }),
);
/** Returns the rows that the history command prints, the newest first. */
async function historyOf(kind: Kind, id: string) {
  const { exit, stdout, stderr } = await run(kind, 'history', id, '--json');
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
  return Changes.parse(JSON.parse(stdout));
}

describe.each(['user', 'tenant'] as const)('History of a %s', (kind) => {
  const { table, column, previousIds, pendingDeletions } = KINDS[kind];
  const why = ['--by', 'operator', '--reason', 'ticket 12'];

  /** Runs every operation on an id, which `moved` replaces. Returns the exit codes. Dry runs change nothing. */
  async function runAll(id: string, moved: string, internalId: string) {
    const exits: unknown[] = [];
    const command = async (...args: string[]) => {
      const { exit, stdout } = await run(kind, ...args, ...why);
      exits.push(exit);
      return stdout;
    };
    const adoption = kind === 'user' ? ['adopt'] : ['adopt', '--map', writeMap(`${id},${internalId}`)];
    await command(...adoption, '--dry-run');
    await command(...adoption);
    if (kind === 'user') await command('publish');
    await schedule(kind, id).catch(() => exits.push('schedule'));
    await command('remember', id);
    const map = writeMap(`${id},${moved}`);
    await command('relink', '--map', map, '--dry-run');
    const [, relinkRun = ''] = /--rollback (\w+)/.exec(await command('relink', '--map', map)) ?? [];
    await command('relink', '--rollback', relinkRun);
    await command('forget', id, '--yes');
    return { exits, relinkRun };
  }

  test('Each operation adds a row with the operator and the reason, and the history finds it by both ids, also after the deletion', async () => {
    const internalId = randomUUID();
    const id = createAtProvider(kind, 'recorded', internalId);
    if (kind === 'user') await database.link(createdBy);
    const { exits, relinkRun } = await runAll(id, `${id}_moved`, internalId);
    expect(new Set(exits)).toEqual(new Set([0]));
    const changes = await historyOf(kind, internalId);
    expect(changes.map(({ operation }) => operation)).toEqual([
      'forget',
      'rollback',
      'relink',
      'remember',
      'schedule',
      'adopt',
    ]);
    for (const { operation, by, reason, internalId: changed } of changes)
      expect([changed, by, reason]).toEqual([
        internalId,
        ...(operation === 'schedule' ? ['event', null] : ['operator', 'ticket 12']),
      ]);
    for (const either of [id, `${id}_moved`])
      expect((await historyOf(kind, either)).map(({ operation }) => operation)).toEqual(
        changes.map(({ operation }) => operation),
      );
    if (kind === 'user')
      expect(await historyOf(kind, createdBy)).toMatchObject([{ operation: 'publish', by: 'operator' }]);
    expect(await historyOf(kind, relinkRun)).toMatchObject([
      { internalId: null, idHash: null, counts: { moved: 1, 'already moved': 0 } },
      { internalId, operation: 'relink', counts: null },
    ]);
    const { stdout } = await run(kind, 'history', relinkRun);
    expect(stdout).toMatch(
      new RegExp(
        `^20\\S+Z relink run ${relinkRun} \\(1 moved, 0 already moved\\) by operator: "ticket 12"\n20\\S+Z relink \\w{16} \\(${internalId}\\) run ${relinkRun} by operator: "ticket 12"\n$`,
      ),
    );
    const { rows } = await pool.query('SELECT string_agg(link_changes::text, $1) AS text FROM link_changes', [
      ' ',
    ]);
    expect(rows[0].text).not.toMatch(/(?:user|org)_|@private/);
  });

  test('The due command adds a row for each deleted id and one for the run, and the default operator is the account of the system', async () => {
    const ids = ['due_1', 'due_2'];
    await database.of(kind).link(...ids);
    for (const id of ids) await schedule(kind, id);
    expect(await run(kind, 'due')).toMatchObject({ exit: 0 });
    const [{ run: dueRun = null } = {}] = await historyOf(kind, 'due_1');
    const changes = await historyOf(kind, dueRun ?? '');
    expect(changes.map(({ operation, counts }) => [operation, counts?.['forgotten']])).toEqual([
      ['due', 2],
      ['due', undefined],
      ['due', undefined],
    ]);
    expect(changes[0]?.by).toMatch(/^.+@.+$/);
  });

  test.each([
    [
      'whose row cannot be added',
      'ALTER TABLE link_changes ADD CONSTRAINT none CHECK (false) NOT VALID',
      'ALTER TABLE link_changes DROP CONSTRAINT none',
    ],
    [
      'whose commit fails',
      `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'failed by a test'; END $$;
       ${[table, pendingDeletions, 'forgotten_users']
         .map(
           (
             name,
           ) => `CREATE CONSTRAINT TRIGGER fail AFTER INSERT OR UPDATE OR DELETE ON ${name} DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW EXECUTE FUNCTION fail();`,
         )
         .join('')}`,
      'DROP FUNCTION fail CASCADE',
    ],
  ])('A change %s is not made and leaves no row', async (name, prevent, allow) => {
    const internalId = randomUUID();
    const [id, linked] = [createAtProvider(kind, name, internalId), `linked ${name}`];
    await database.of(kind).link(linked);
    await database.of(kind).markForgotten(`forgotten ${name}`);
    await pool.query(`INSERT INTO ${pendingDeletions} VALUES ($1, now())`, [`pending ${name}`]);
    const stored = async () =>
      (
        await pool.query(`SELECT ${column} AS id FROM ${table} UNION ALL SELECT ${column} FROM ${previousIds}
          UNION ALL SELECT ${column} FROM ${pendingDeletions} UNION ALL SELECT encode(id_hash, 'hex') FROM forgotten_users
          UNION ALL SELECT unnest(provider_ids) FROM unfinished_deletions
          UNION ALL SELECT id::text FROM link_changes WHERE id_hash IS NOT NULL ORDER BY 1`)
      ).rows;
    const before = await stored();
    await pool.query(prevent);
    const { exits } = await runAll(id, `${id}_moved`, internalId);
    for (const args of [
      ['remember', `forgotten ${name}`],
      ['remember', `pending ${name}`],
      ['due'],
      ['relink', '--map', writeMap(`${linked},moved`)],
      ['forget', linked, '--yes'],
    ])
      exits.push((await run(kind, ...args)).exit);
    await pool.query(allow);
    expect(exits).toContain('schedule');
    expect(exits.slice(-5)).toEqual([1, 1, 1, 1, 1]);
    expect(await stored()).toEqual(before);
  });
});
