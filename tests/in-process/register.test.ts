import { NextRequest } from 'next/server';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { waitUntil } from '../../dev/system/processes';
import { lockRow, openTransaction } from '../harness/dependencies/row-lock';
import { failInserts, importAsProcess, startInProcess } from '../harness/in-process';

const { database } = await startInProcess();

/**
 * Returns the register function as a separate process would load it. The function throws for a forgotten user. A user is
 * forgotten for some days after an operator has deleted the row of the user. During these days, only a session token that was
 * issued after the deletion may create the user again.
 */
const loadRegister = async () => {
  const { register } = await importAsProcess(() => import('#lib/register'));
  return async (user: string, issuedAt?: number) => {
    const registration = await register('user', user, issuedAt);
    if (registration === undefined) throw new Error('The user is forgotten');
    return registration;
  };
};

const register = await loadRegister();

beforeEach(() => {
  database.takeStatements();
});
afterEach(async () => {
  vi.useRealTimers();
  await database.proxy.treat('forward');
});

test('Registering a new user takes a SELECT and an INSERT, and registering an existing user takes one SELECT', async () => {
  const first = await register('user_new');
  expect(database.takeVerbs()).toEqual(['SELECT', 'INSERT']);
  const second = await register('user_new');
  expect(database.takeVerbs()).toEqual(['SELECT']);
  expect([first.created, second]).toEqual([true, { ...first, created: false }]);
  expect(await database.idsOf('user_new')).toEqual([first.id]);
});

test('Concurrent lookups of users share one statement', async () => {
  const { findLink } = await import('#lib/ids/store');
  const [k, l] = [await register('user_k'), await register('user_l')];
  database.takeStatements();
  const ids = ['user_k', 'user_without_link', 'user_l'];
  const [foundK, none, foundL] = await Promise.all(ids.map((user) => findLink('user', user)));
  expect(database.takeVerbs()).toEqual(['SELECT']);
  expect([foundK?.id, none, foundL?.id]).toEqual([k.id, { state: 'none' }, l.id]);
});

test.each([
  ['1', 200, 403, ['user_own']],
  ['', 200, 201, ['user_other', 'user_own']],
])(
  'With REGISTER_OWN_ID_ONLY=%j, the register route responds %i to the id of the caller and %i to another id, and a 403 comes before any statement for that id',
  async (value, ownStatus, otherStatus, ids) => {
    vi.stubEnv('REGISTER_OWN_ID_ONLY', value);
    const [{ POST }, { signVerdict, VERDICT }, { setEnvironment }] = await importAsProcess(() =>
      Promise.all([
        import('../../app/auth/v1/register/route'),
        import('#lib/http/signed-verdict'),
        import('#lib/base/env'),
      ]),
    );
    setEnvironment();
    const submit = async (identityProviderUserId: string) => {
      const headers = { [VERDICT]: signVerdict({ user: 'user_own', issuedAt: 0 }) };
      const body = JSON.stringify({ identityProviderUserId });
      const request = new NextRequest('http://localhost/', { method: 'POST', headers, body });
      const response = await POST(request, { params: Promise.resolve({}) });
      return { status: response.status, body: await response.json() };
    };
    expect(await submit('user_own')).toMatchObject({ status: ownStatus });
    database.takeStatements();
    const other = await submit('user_other');
    expect(other.status).toBe(otherStatus);
    if (otherStatus === 403)
      expect([other.body, database.takeStatements()]).toEqual([{ message: 'Forbidden' }, []]);
    expect(await database.users('user\\_o%')).toEqual(ids);
    vi.stubEnv('REGISTER_OWN_ID_ONLY', '');
    setEnvironment();
  },
);

test.each([
  ['returns the inserted id after the commit', 'commit', false, ['SELECT', 'INSERT', 'SELECT']],
  ['creates the user after the rollback', 'release', true, ['SELECT', 'INSERT']],
] as const)(
  'A registration that waits for a concurrent insert of the same user %s',
  async (_what, end, created, statements) => {
    const id = `user_${end}`;
    const other = await lockRow(database, id);
    const registration = register(id);
    expect(await other.waiting(1)).toBe(true);
    await other[end]();
    expect(await registration).toMatchObject({ created });
    expect(await database.idsOf(id)).toEqual([(await registration).id]);
    expect(database.takeVerbs()).toEqual(statements);
  },
);

// The errors of a transaction that lost a race against another transaction.
test.each([
  ['serialization failure', '40001'],
  ['deadlock', '40P01'],
  ['unique violation', '23505'],
])(
  'A registration whose first four attempts fail with a %s (%s) succeeds in the fifth attempt, and rejects if that fails too',
  async (_name, sqlState) => {
    await failInserts(database, sqlState, 4);
    expect(await register(`user_${sqlState}`)).toMatchObject({ created: true });
    expect(database.takeVerbs()).toEqual(Array.from({ length: 5 }, () => ['SELECT', 'INSERT']).flat());
    await failInserts(database, sqlState, 5);
    const user = `user_rejected_${sqlState}`;
    await expect(register(user)).rejects.toThrow();
    expect(await database.idsOf(user)).toEqual([]);
    expect(await register(user)).toMatchObject({ created: true });
  },
);

test('A registration rejects if the database commits the INSERT but its response is lost, and a later registration returns the id', async () => {
  const { proxy } = database;
  const record = proxy.onClientData;
  await register('user_warm_up');
  proxy.onClientData = (chunk) => {
    record?.(chunk);
    if (chunk.includes('INSERT')) proxy.onTargetData = () => void proxy.treat('reset');
  };
  await expect(register('user_unheard')).rejects.toThrow();
  Object.assign(proxy, { onClientData: record, onTargetData: undefined });
  await proxy.treat('forward');
  const [id] = await database.idsOf('user_unheard');
  expect(await register('user_unheard')).toEqual({ state: 'linked', id, created: false });
});

test('A registration rejects after 8 s, even if the connection and the statement stay below their own timeouts', async () => {
  await (await import('#lib/storage/database')).closeDatabase();
  const table = await openTransaction(database, 'LOCK TABLE users');
  await database.proxy.treat('hold');
  const { connections } = database.proxy;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    let outcome = 'pending';
    const call = register('user_late').catch((error: Error) => {
      outcome = error.message;
    });
    expect(await waitUntil(() => database.proxy.connections > connections, 10_000)).toBe(true);
    await vi.advanceTimersByTimeAsync(6_900);
    await database.proxy.treat('forward');
    expect(await table.waiting(1)).toBe(true);
    await vi.advanceTimersByTimeAsync(1_099);
    expect(outcome).toBe('pending');
    await vi.advanceTimersByTimeAsync(1);
    await call;
    expect(outcome).toBe('Timed out');
  } finally {
    await table.release();
  }
});

test('Without the unique key of the table, a registration rejects and creates no row', async () => {
  const key = 'users_identity_provider_user_id_key';
  await database.pool.query(`DROP INDEX ${key}`);
  await expect(register('user_without_key')).rejects.toThrow();
  expect(await database.idsOf('user_without_key')).toEqual([]);
  await database.pool.query(`CREATE UNIQUE INDEX ${key} ON users (identity_provider_user_id)`);
});

test('A registration rejects if a trigger skips its INSERT, and succeeds after the removal of the trigger', async () => {
  await database.pool.query(`
    CREATE FUNCTION skip_insert() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER skip_insert BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION skip_insert()`);
  await expect(register('user_vanished')).rejects.toThrow('neither found nor created');
  await database.pool.query('DROP TRIGGER skip_insert ON users; DROP FUNCTION skip_insert');
  expect(await register('user_vanished')).toMatchObject({ created: true });
});
