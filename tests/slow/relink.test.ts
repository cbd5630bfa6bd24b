import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Kind } from '#lib/core/ports';
import { KINDS } from '#lib/ids/store';
import { REMEDIES } from '#lib/operator/relink-map';
import { lockInserts } from '../harness/dependencies/row-lock';
import { startProvider } from '../harness/identity-provider';
import { deliver, me, register, tokenFor, userCreated } from '../harness/requests';
import { LIVE_KEYS, providerVariables, startServiceProcess, startTestService } from '../harness/service';
import { runLinksCommand } from '../vitest/run-links-command';
import { stopAfterAll } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

// `npm run users -- relink` moves users to another instance of the identity provider, and `npm run tenants -- relink`
// organizations. A map lists the old and the new id of each. A collision is a line of the map that cannot be applied. Each has
// the same internal id under both ids until the old id, which is the previous id after the move, expires.
const folder = temporaryFolder();
/** The deployment with the keys of the old instance. */
const service = stopAfterAll(await startTestService());
const { database, environment, kv } = service;
const newIdp = stopAfterAll(await startProvider(LIVE_KEYS));
const newEnvironment = { ...environment, ...providerVariables(LIVE_KEYS, newIdp) };
/** The deployment with the keys of the new instance and the same database. */
const newDeployment = stopAfterAll(await startServiceProcess(newEnvironment));

const relink = (kind: Kind, ...args: string[]) => runLinksCommand(kind, ['relink', ...args], environment);
/** Writes a map and returns the path of the file. */
function mapFile(lines: readonly string[]): string {
  const file = path.join(folder, `${randomBytes(4).toString('hex')}.csv`);
  writeFileSync(file, lines.join('\n'));
  return file;
}
const rows = async (kind: Kind) => {
  const text = `SELECT * FROM ${KINDS[kind].table} ORDER BY id`;
  return (await database.pool.query<[internalId: string, providerId: string]>({ text, rowMode: 'array' }))
    .rows;
};
/** Sends a request with a session token of a user. Returns the internal id, or the status of an error response. */
const visit = async (url: string, idp: Parameters<typeof tokenFor>[0], id: string) => {
  const { status, body } = await me(url, tokenFor(idp, id));
  return status === 200 ? String(Object(body).userId) : status;
};

beforeEach(async () => {
  await database.pool.query('TRUNCATE users, tenants, forgotten_users CASCADE');
});

describe.each(['user', 'tenant'] as const)('npm run %ss -- relink', (kind) => {
  const { link, markForgotten } = database.of(kind);

  test('The relink command reports each kind of collision with the line number and a remedy, and does not change any row', async () => {
    await link('moved', 'moved_too', 'linked', 'ok', 'previous', 'to_forgotten', 'a', 'c', 'f', 'leaving');
    expect(await relink(kind, '--map', mapFile(['moved,to_1', 'moved_too,to_2']))).toMatchObject({ exit: 0 });
    await markForgotten('gone', 'gone_too');
    // A tenant may move to a forgotten organization, unless its deletion is pending.
    const pending = `INSERT INTO pending_deletions VALUES ('${kind}', 'leaving', now()), ('${kind}', 'gone_too', now())`;
    await database.pool.query(pending);
    const lines = [
      ['ok,ok_new', undefined],
      [',x', 'invalid id'],
      ['linked,\tok_new_2', 'white space around an id'],
      ['c,c_1', 'id occurs twice'],
      ['c,c_2', 'id occurs twice'],
      ['same,same', 'old and new id are the same'],
      ['a,leaving', 'new id is the old id of another line'],
      ['f,to_1', 'new id is linked to another internal id'],
      ['unknown,x_1', 'unknown old id'],
      ['moved,x_2', 'old id was moved to another id'],
      ['previous,moved_too', 'new id is a previous id of another internal id'],
      ['gone,x_3', 'old id is forgotten'],
      ['to_forgotten,gone_too', 'new id is forgotten or has a pending deletion'],
      ['leaving,x_4', 'old id has a pending deletion'],
    ] as const;
    const expected = lines.flatMap(([, kind], index) => (kind ? [`line ${index + 1}: ${kind}`] : []));
    expect(new Set(lines.flatMap(([, kind]) => kind ?? []))).toEqual(new Set(Object.keys(REMEDIES)));
    const before = await rows(kind);
    for (const options of [['--dry-run'], []]) {
      const map = mapFile(lines.map(([line]) => line));
      const { exit, stdout } = await relink(kind, '--map', map, ...options);
      const reported = stdout.split('\n').filter((line) => line.startsWith('line '));
      expect(reported.map((line) => line.split(/: \S* -> |\. /)[0])).toEqual(expected);
      expect(reported[7]).toBe(
        'line 9: unknown old id: unknown -> x_1. For a user, run a backfill with the secret key of the old instance. Otherwise remove the line.',
      );
      expect(stdout).toMatch(
        /\n14 lines, 1 to move, 0 already moved, 13 collisions\nNothing was changed\.\n$/,
      );
      expect(exit).toBe(1);
      expect(await rows(kind)).toEqual(before);
    }
  });

  test('The relink command prints how to undo a run only if the run has moved an id', async () => {
    await link('stuck');
    const command = [kind, '--map', mapFile(['stuck,to_stuck']), '--retry-seconds', '0'] as const;
    const held = await lockInserts(database, kind);
    const counts = '1 lines, 0 moved, 0 already moved, 0 collisions\n';
    expect(await relink(...command)).toMatchObject({ exit: 1, stdout: `${counts}Nothing was changed.\n` });
    await held.release();
    // The transaction commits, and the command then cannot delete the cache entries.
    await kv.proxy.treat('refuse');
    const { exit, stdout } = await relink(...command);
    await kv.proxy.treat('forward');
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: expect.stringMatching(`^${counts}To undo this: `) });
  });

  test('The relink command moves all ids of a map once, and a rollback moves them back once', async () => {
    const ids = Array.from({ length: 500 }, (_, index) => `user_${index}`);
    await link(...ids);
    const before = await rows(kind);
    const file = mapFile(ids.map((id) => `${id},new_${id}`));
    const { exit, stdout } = await relink(kind, '--map', file);
    const counts = '500 lines, 500 moved, 0 already moved, 0 collisions\n';
    expect({ exit, stdout }).toEqual({ exit: 0, stdout: expect.stringContaining(counts) });
    expect(await rows(kind)).toEqual(before.map(([id, user]) => [id, `new_${user}`]));
    expect(await relink(kind, '--map', file)).toMatchObject({
      stdout: expect.stringContaining('500 lines, 0 moved, 500 already moved, 0 collisions\n'),
    });

    const [, run = ''] = /--rollback (\w+)\n$/.exec(stdout) ?? [];
    expect(await relink(kind, '--rollback', run, '--dry-run')).toMatchObject({
      stdout: '500 lines, 500 to move, 0 already moved, 0 collisions\nNothing was changed.\n',
    });
    expect(await relink(kind, '--rollback', run)).toMatchObject({ exit: 0 });
    expect(await rows(kind)).toEqual(before);
    expect(await relink(kind, '--rollback', run)).toMatchObject({
      exit: 2,
      stderr: expect.stringContaining(`no ${kind === 'user' ? 'user' : 'organization'}`),
    });
  });
});

test.each([
  [['--map', 'no such file'], 'Cannot read no such file.'],
  [['--map', mapFile(['a,b', 'c'])], 'Line 2 of the map is malformed. Write old,new'],
  [[], 'Pass one of --map, --external-id and --rollback.'],
  [['--rollback', '0123456789abcdef'], 'There is no user to move.'],
  [['--external-id', '--window-days', '0'], 'Pass a whole number from 1 to 999.'],
])(
  'The relink command exits with 2 and a message if its arguments are invalid or select no user: %j',
  async (args, message) => {
    expect(await relink('user', ...args)).toMatchObject({
      exit: 2,
      stderr: expect.stringContaining(message),
    });
  },
);

test('The commands of docs/users.md move the users to another instance, and sessions of both instances work', async () => {
  const { idp } = service;
  const people = Array.from({ length: 20 }, (_, index) =>
    idp.createUser({ email: `person-${index}@private.example` }),
  );
  const [first] = people;
  if (first === undefined) throw new Error('No user was created');
  const userId = await visit(service.url, idp, first.id);
  const commands = [
    ...readFileSync('docs/users.md', 'utf8').matchAll(/^npm run -s users -- (\w+)(.*?) +# (old|new) key/gm),
  ];
  expect(commands.map(([, name]) => name)).toEqual(['backfill', 'relink', 'relink', 'check']);
  const moved = new Map<string, string>();
  for (const [, name = '', options = '', key] of commands) {
    if (key === 'new' && moved.size === 0) {
      for (const person of people) {
        const created = newIdp.createUser({ email: person.email });
        newIdp.store.users.put({ ...created, externalId: person.id });
        moved.set(person.id, created.id);
      }
    }
    const args = [name, ...options.split(' ').filter((word) => word !== '')];
    const { exit, stdout } = await runLinksCommand(
      'user',
      args,
      key === 'new' ? newEnvironment : environment,
    );
    expect({ name, exit, stdout }).toMatchObject({ exit: 0 });
    expect(await visit(service.url, idp, first.id)).toBe(userId);
  }
  const newId = moved.get(first.id) ?? '';
  expect(await database.users()).toEqual([...moved.values()].sort());
  for (const [url, provider, id] of [
    [service.url, idp, first.id],
    [newDeployment.url, newIdp, newId],
  ] as const) {
    expect(await visit(url, provider, id)).toBe(userId);
    expect(await deliver(url, userCreated(id))).toMatchObject({ status: 200 });
    expect(await register(url, tokenFor(provider, id), { identityProviderUserId: id })).toMatchObject({
      status: 200,
      body: { userId },
    });
  }
  expect(await database.users()).toHaveLength(people.length);
  expect(await runLinksCommand('user', ['check'], environment)).toMatchObject({ exit: 0 });
  const shown = await runLinksCommand('user', ['show', first.id], newEnvironment);
  expect(shown).toMatchObject({ exit: 0, stdout: expect.stringMatching(`\nprovider's id +${newId}\n`) });
  expect(shown.stdout).toMatch(`previous id    ${first.id} until 20`);
});
