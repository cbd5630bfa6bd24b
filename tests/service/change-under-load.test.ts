import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { memoryEngine } from '../../dev/kv/memory';
import { startKvServer } from '../../dev/kv/server';
import { deployMigrations } from '../../lib/migrations/deploy';
import { type Burst, brokenLinks, startBurst } from '../harness/burst';
import { inParallel } from '../harness/parallel';
import { startReplicatedPostgres } from '../harness/parts/replicated-postgres';
import { type Answer, me, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

const postgres = stopAfterAll(await startReplicatedPostgres());
const service = stopAfterAll(await startTestService({ processes: 2, server: postgres }));
const migrations = temporaryFolder();

const statuses = ({ answers }: Burst) => [...new Set(answers.map(({ status }) => status))].sort();
/** Resolves once so many more users were acknowledged. */
const acknowledges = (burst: Burst, more: number) => {
  const before = burst.acknowledged().size;
  return expect.poll(() => burst.acknowledged().size - before).toBeGreaterThan(more);
};
const allIsWell = { missing: [], ambiguous: [] };

test('a migration that adds a column is applied in the middle of a burst: no answer fails', async () => {
  cpSync('prisma/migrations', migrations, { recursive: true });
  mkdirSync(path.join(migrations, '29990101000000_add_note'));
  writeFileSync(
    path.join(migrations, '29990101000000_add_note/migration.sql'),
    'ALTER TABLE users ADD COLUMN note TEXT;',
  );
  const burst = await startBurst(service, 'migrated');
  await acknowledges(burst, 30);
  expect(await deployMigrations(service.database.url, migrations)).toEqual(['29990101000000_add_note']);
  await acknowledges(burst, 30);
  await burst.end();
  expect(statuses(burst)).toEqual([200, 201]);
  expect(await brokenLinks(service, burst)).toEqual(allIsWell);
});

test('another cache, with nothing in it, behind the same address: no answer fails, and a look-up a user and process at most', async () => {
  const users = Array.from({ length: 20 }, (_, index) => `user_cached_${index}`);
  const questions = users
    .map((id) => tokenFor(service.idp, id))
    .flatMap((token) => service.processes.map(({ url }) => ({ url, token })));
  const answers: (Answer & { cache: string | undefined; question: number })[] = [];
  const askAll = () =>
    inParallel(8, questions, async ({ url, token }, question) => {
      const answer = await me(url, token);
      const cache = answer.headers.get('server-timing')?.match(/cache;desc=(\w+)/)?.[1];
      answers.push({ ...answer, cache, question });
    });
  const { KV_REST_API_TOKEN: token = '' } = service.environment;
  const other = stopAfterTest(await startKvServer({ token, engine: memoryEngine() }));
  onTestFinished(() => service.kv.proxy.lead(service.kv.address));
  const { hostname: host, port } = new URL(other.url);

  await askAll();
  const known = new Set(answers.splice(0).map(({ body }) => Object(body).userId));
  service.database.takeStatements();
  const underWay = askAll();
  await expect.poll(() => answers.length > 0, { interval: 1 }).toBe(true);
  service.kv.proxy.lead({ host, port: Number(port) });
  await underWay;
  await askAll();
  await askAll();

  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(answers.map(({ body }) => Object(body).userId))).toEqual(known);
  const lookedUp = answers.filter(({ cache }) => cache === 'miss').map(({ question }) => question);
  expect(lookedUp.length, 'the cache was empty').toBeGreaterThan(0);
  expect(new Set(lookedUp).size, 'no process looks a user up twice').toBe(lookedUp.length);
  // Who was asking for the cache at that very moment may have gone on without it.
  const bypassed = answers.filter(({ cache }) => cache === 'bypass').length;
  expect(bypassed).toBeLessThanOrEqual(8);
  const statements = service.database.takeStatements();
  expect(statements.filter((sql) => !sql.startsWith('SELECT'))).toEqual([]);
  expect(statements.length).toBeLessThanOrEqual(lookedUp.length + bypassed);
  expect(service.linesWith('cache skipped'), 'it was not given up').toEqual([]);
});

test('the primary killed in a burst, the standby promoted: nothing acknowledged is missing, and the pool follows', async () => {
  const cached = await me(service.url, tokenFor(service.idp, 'user_kept'));
  const burst = await startBurst(service, 'failover');
  await acknowledges(burst, 30);
  // What is committed from now on is lost with the primary: it must not be acknowledged.
  await postgres.cutReplication();
  const statement = `SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
  const waiting = async () => (await service.database.pool.query(statement)).rowCount;
  await expect.poll(waiting, { message: 'commits wait for the standby' }).toBeGreaterThan(2);
  await postgres.killPrimary();
  expect(await me(service.url, tokenFor(service.idp, 'user_kept'))).toMatchObject({
    status: 200,
    body: cached.body,
  });
  await postgres.promoteStandby();
  await acknowledges(burst, 30);
  await burst.end();
  expect(statuses(burst)).toEqual([200, 201, 500]);
  expect(await brokenLinks(service, burst)).toEqual(allIsWell);
});
