import { afterAll, beforeAll, onTestFinished, vi } from 'vitest';
import { createTestDatabase, type DatabaseServer, type TestDatabase } from './dependencies/database';
import { startTestKv } from './dependencies/kv';
import { PUBLISHABLE_KEY, SECRET_KEY, SIGNING_SECRET } from './keys';

/**
 * Starts a database and a KV server for a test file, and configures lib/ to use them. Stops them after the tests.
 *
 * The functions of lib/ connect to both servers as in production, but the tests call these functions directly. No test therefore
 * waits for the start of a service process. With a database lock or `beforeCommand`, a test can stop a call between two SQL
 * statements or KV commands. `server` is that of `createTestDatabase`.
 */
export async function startInProcess(server?: DatabaseServer) {
  const database = await createTestDatabase(server);
  const kv = await startTestKv();
  const environment = {
    IDP_SECRET_KEY: SECRET_KEY,
    IDP_PUBLISHABLE_KEY: PUBLISHABLE_KEY,
    IDP_WEBHOOK_SIGNING_SECRET: SIGNING_SECRET,
    DATABASE_URL: database.url,
    ...kv.environment,
  };
  beforeAll(async () => {
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    // Loads the database client (Prisma) and runs a first query, so that the first test does not have to wait for this work. An
    // error is ignored here, because the tests that use the client report the error.
    await import('#lib/ids/store')
      .then(({ findLinks }) => findLinks('user', ['user_warm_up']))
      .catch(() => undefined);
  });
  afterAll(async () => {
    await (await import('#lib/storage/database')).closeDatabase();
    vi.unstubAllEnvs();
    await kv.stop();
    await database.drop();
  });
  return { database, kv };
}

/**
 * Runs `load`, which imports modules of lib/, after a reset of the module cache. The imported modules are therefore new, as in
 * another process. Modules from the same call of this function share their lookups in flight. Modules from different calls share
 * only the state of lib/base/process-state.ts, such as the connections to the database and the cache.
 */
export async function importAsProcess<T>(load: () => Promise<T>): Promise<T> {
  vi.resetModules();
  (await import('#lib/base/log')).log.level = 'silent';
  return load();
}

/** Lets the next command create a KV client, whose circuit breaker is closed. */
export const renewKvClient = (): boolean =>
  Reflect.deleteProperty(globalThis, Symbol.for('identity-link.kv'));

/** SQLSTATE of a full disk, an error that the service does not retry. */
export const DISK_FULL = '53100';
/** SQLSTATE of a transaction that lost a race. The service retries such a transaction. */
export const SERIALIZATION_FAILURE = '40001';

/** Makes the next `count` inserts into `users` of the current test fail with a SQLSTATE. */
export async function failInserts({ pool }: TestDatabase, sqlState: string, count: number): Promise<void> {
  const allow =
    'DROP TRIGGER IF EXISTS fail_insert ON users; DROP FUNCTION IF EXISTS fail_insert; DROP SEQUENCE IF EXISTS attempts';
  // A sequence also counts the attempts that are rolled back.
  await pool.query(`
    ${allow};
    CREATE SEQUENCE attempts;
    GRANT USAGE ON SEQUENCE attempts TO PUBLIC;
    CREATE FUNCTION fail_insert() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval('attempts') <= ${count} THEN RAISE EXCEPTION 'failed by a test' USING ERRCODE = '${sqlState}'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER fail_insert BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION fail_insert()`);
  onTestFinished(async () => {
    await pool.query(allow);
  });
}
