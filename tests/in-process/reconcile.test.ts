import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { KINDS } from '#lib/ids/store';
import type { ReconcileResult } from '#lib/operator/reconcile';
import { importAsProcess, startInProcess } from '../harness/in-process';
import { stubProvider } from '../harness/provider-stub';

const { database } = await startInProcess();
const provider = stubProvider();
afterAll(() => provider.restore());

const { deleteLink, insertLinks, reconcile } = await importAsProcess(async () => ({
  ...(await import('#lib/operator/reconcile')),
  ...(await import('#lib/operator/delete-link')),
  ...(await import('#lib/ids/store')),
}));

// A linked user has a row in `users`, a linked organization one in `tenants`. A forgotten one had a row, which an operator has
// deleted. A previous id is an id that it had at the provider before an operator moved it to another id.

/** Reasons of the waits between two attempts. */
const waits: string[] = [];

afterEach(async () => {
  await database.pool.query('TRUNCATE users, tenants, forgotten_users CASCADE');
  provider.failures.length = 0;
  waits.length = 0;
});

describe.each(['user', 'tenant'] as const)('Check: %s', (kind) => {
  const { table, column } = KINDS[kind];
  async function run(): Promise<ReconcileResult[][]> {
    const steps: ReconcileResult[][] = [];
    const sleep = async () => undefined;
    for await (const step of reconcile(kind, { seconds: 5, sleep, onWait: (reason) => waits.push(reason) })) {
      steps.push(step);
      if (steps.length === 1) provider.failures.push(() => new Response('', { status: 502 }));
    }
    return steps;
  }
  const signUp = (...ids: string[]) => {
    provider.entries[kind] = ids.map((id, index) => ({ id, createdAt: index }));
  };

  test('A user or organization of the provider is linked, forgotten or not linked. A user that is not linked is a difference', async () => {
    await insertLinks(kind, ['id_linked']);
    for (const id of ['id_forgotten', 'id_back']) await deleteLink(kind, id, 30, { by: 'me' });
    await insertLinks(kind, ['id_back'], Date.now() / 1_000 + 60);
    signUp('id_linked', 'id_new', 'id_forgotten', 'id_back', 'id\0nul');
    const [step] = await run();
    expect(step?.map(({ id, outcome }) => [id, outcome])).toEqual([
      ['id_linked', 'linked'],
      ['id_new', 'not linked'],
      ['id_forgotten', 'forgotten'],
      ['id_back', 'linked'],
      ['id\0nul', 'not linked'],
    ]);
    expect(step?.filter(({ reason }) => reason)).toHaveLength(kind === 'user' ? 2 : 0);
  });

  test('A row is not at the provider if the provider has neither the present id nor any previous id of the row. A request that fails is repeated', async () => {
    await insertLinks(kind, ['id_present', 'id_moved', 'id_gone']);
    await database.pool.query(`
    INSERT INTO previous_ids SELECT '${kind}', 'old_' || ${column}, id, ${column}, 'run', '2030-01-01' FROM ${table}
    WHERE ${column} IN ('id_moved', 'id_gone')`);
    signUp('id_present', 'old_id_moved');
    provider.failures.push(() => new Response('', { status: 503 }));
    const [reason] = await database.of(kind).idsOf('id_gone');
    const [, ...steps] = await run();
    expect(steps.flat().filter((result) => result.outcome !== 'at the provider')).toEqual([
      { id: 'id_gone', outcome: 'not at the provider', reason },
    ]);
    expect(steps.flat()).toHaveLength(3);
    expect(waits).toEqual([503, 502].map((status) => `the identity provider responds with status ${status}`));
  });

  test('A check compares each user or organization and each row once, in pages of 500', async () => {
    const ids = Array.from({ length: 999 }, (_, index) => `id_${String(index).padStart(3, '0')}`);
    signUp(...ids);
    for (const half of [ids.slice(0, 500), ids.slice(500)]) await insertLinks(kind, half.slice(1));
    const gone = ['id_gone_1', 'id_gone_2', 'id_gone_3'];
    await insertLinks(kind, gone);
    // An update moves rows to the end of the table, so that the rows of the table are not sorted by id.
    await database.pool.query(`UPDATE ${table} SET id = id WHERE ${column} < 'id_500'`);
    const steps = await run();
    expect(steps.map((step) => step.length)).toEqual([500, 499, 500, 500, 0]);
    const idsWith = (outcome: string) =>
      steps.flat().flatMap((result) => (result.outcome === outcome ? [result.id] : []));
    expect(idsWith('not linked')).toEqual(['id_000', 'id_500']);
    expect(idsWith('not at the provider')).toEqual(gone);
  });
});
