import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Kind } from '#lib/core/ports';
import { KINDS } from '#lib/ids/store';
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

function writeMap(line: string): string {
  const file = path.join(root, `${randomUUID()}.csv`);
  writeFileSync(file, line);
  return file;
}
/** Creates a user or an organization that is not linked. The user has the given `external_id`. */
function createAtProvider(kind: Kind, externalId: string): string {
  if (kind === 'tenant') return provider.createOrganization({ name: 'recorded', createdBy }).id;
  const user = provider.createUser({ email: `${randomUUID()}@private.example` });
  return provider.store.users.put({ ...user, externalId }).id;
}
const schedule = (kind: Kind, id: string) =>
  service.database().$transaction((transaction) => service.scheduleDeletion(kind, transaction, id, 0));

describe.each(['user', 'tenant'] as const)('History of a %s', (kind) => {
  const { table, column } = KINDS[kind];
  const { link, markForgotten } = database.of(kind);
  const why = ['--by', 'operator', '--reason', 'ticket 12'];
  /** Returns the rows that the history command prints, the newest first. */
  const historyOf = async (id: string) => {
    const { stdout } = await run(kind, 'history', id, '--json');
    return z.array(z.record(z.string(), z.unknown())).parse(JSON.parse(stdout));
  };
  const operationsOf = async (id: string) => (await historyOf(id)).map((change) => change['operation']);

  /** Runs every operation on an id, which a relink replaces and its rollback gives back. Dry runs change nothing. */
  async function runAll(id: string, internalId: string) {
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
    const map = writeMap(`${id},${id}_moved`);
    await command('relink', '--map', map, '--dry-run');
    const [, relinkRun = ''] = /--rollback (\w+)/.exec(await command('relink', '--map', map)) ?? [];
    await command('relink', '--rollback', relinkRun);
    await command('forget', id, '--yes');
    return { exits, relinkRun };
  }

  test('Each operation adds a row with the operator and the reason, and the history finds it by both ids, also after the deletion', async () => {
    const internalId = randomUUID();
    const id = createAtProvider(kind, internalId);
    if (kind === 'user') await link(createdBy);
    const { exits, relinkRun } = await runAll(id, internalId);
    expect(new Set(exits)).toEqual(new Set([0]));
    const operations = ['forget', 'rollback', 'relink', 'remember', 'schedule', 'adopt'];
    expect(await historyOf(internalId)).toMatchObject(
      operations.map((operation) => ({
        operation,
        internalId,
        ...(operation === 'schedule'
          ? { by: 'event', reason: null }
          : { by: 'operator', reason: 'ticket 12' }),
      })),
    );
    for (const either of [id, `${id}_moved`]) expect(await operationsOf(either)).toEqual(operations);
    if (kind === 'user') expect(await operationsOf(createdBy)).toEqual(['publish']);
    const { stdout } = await run(kind, 'history', relinkRun);
    expect(stdout.replace(/\d\S+Z|(?<=relink )[0-9a-f]{16}/g, '…')).toBe(
      `… relink run ${relinkRun} (1 moved, 0 already moved) by operator: "ticket 12"\n` +
        `… relink … (${internalId}) run ${relinkRun} by operator: "ticket 12"\n`,
    );
    const { rows } = await pool.query(`SELECT string_agg(link_changes::text, ' ') AS text FROM link_changes`);
    expect(rows[0].text).not.toMatch(/(?:user|org)_|@private/);
  });

  test('The history shows a row that it cannot read, and no character of a row that a terminal interprets', async () => {
    const values = `gen_random_uuid(), 'infinity', $1, 'x', NULL, NULL, NULL, '{"a":"b"}', 'me', NULL`;
    await pool.query(
      `INSERT INTO link_changes VALUES (${values}), (gen_random_uuid(), now(), $1, $2, NULL, $2, 'odd', $3, $2, $2)`,
      [kind, '\x1b[2K\u009b\u202e\n', { '\x1b\u009b\u202e\n': 1 }],
    );
    const { exit, stdout } = await run(kind, 'history');
    expect(exit).toBe(0);
    expect(stdout).toMatch(/^A row that this command cannot read: .*"a":"b".*\n20\S+Z "\\u001b\[2K/);
    for (const text of [stdout, (await run(kind, 'history', 'odd', '--json')).stdout])
      expect(text).not.toMatch(/(?!\n)\p{C}/u);
    await pool.query('TRUNCATE link_changes');
  });

  test('The due command adds a row for each deleted id and one for the run, and the default operator is the account of the system', async () => {
    await link('due_1', 'due_2');
    for (const id of ['due_1', 'due_2']) await schedule(kind, id);
    await run(kind, 'due');
    const [due] = await historyOf('due_1');
    expect(await historyOf(String(due?.['run']))).toMatchObject([
      { operation: 'due', by: expect.stringMatching(/^.+@.+$/), counts: { forgotten: 2 } },
      { operation: 'due', counts: null },
      { operation: 'due', counts: null },
    ]);
  });

  const createTrigger = (name: string) =>
    `CREATE CONSTRAINT TRIGGER fail AFTER INSERT OR UPDATE OR DELETE ON ${name} DEFERRABLE INITIALLY DEFERRED
       FOR EACH ROW EXECUTE FUNCTION fail();`;
  test.each([
    [
      'whose row cannot be added',
      'ALTER TABLE link_changes ADD CONSTRAINT none CHECK (false) NOT VALID',
      'ALTER TABLE link_changes DROP CONSTRAINT none',
    ],
    [
      'whose commit fails',
      `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'failed by a test'; END $$;
       ${[table, 'pending_deletions', 'forgotten_users'].map(createTrigger).join('')}`,
      'DROP FUNCTION fail CASCADE',
    ],
  ])('A change %s is not made and leaves no row', async (name, prevent, allow) => {
    const internalId = randomUUID();
    const [id, linked] = [createAtProvider(kind, internalId), `linked ${name}`];
    await link(linked);
    await markForgotten(`forgotten ${name}`);
    await pool.query('INSERT INTO pending_deletions VALUES ($1, $2, now())', [kind, `pending ${name}`]);
    const stored = () =>
      pool.query(`SELECT ${column} AS id FROM ${table} UNION ALL SELECT provider_id FROM previous_ids
        UNION ALL SELECT provider_id FROM pending_deletions UNION ALL SELECT encode(id_hash, 'hex') FROM forgotten_users
        UNION ALL SELECT unnest(provider_ids) FROM unfinished_deletions
        UNION ALL SELECT id::text FROM link_changes WHERE id_hash IS NOT NULL ORDER BY 1`);
    const { rows: before } = await stored();
    await pool.query(prevent);
    const { exits } = await runAll(id, internalId);
    const remembered = [`forgotten ${name}`, `pending ${name}`].map((each) => ['remember', each]);
    const map = writeMap(`${linked},moved`);
    for (const args of [...remembered, ['due'], ['relink', '--map', map], ['forget', linked, '--yes']])
      exits.push((await run(kind, ...args)).exit);
    await pool.query(allow);
    expect(exits).toContain('schedule');
    expect(exits.slice(-5)).toEqual([1, 1, 1, 1, 1]);
    expect((await stored()).rows).toEqual(before);
  });
});
