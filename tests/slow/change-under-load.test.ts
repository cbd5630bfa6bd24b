import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { memoryEngine } from '../../dev/kv/memory';
import { startKvServer } from '../../dev/kv/server';
import { deployMigrations } from '../../lib/migrations/deploy';
import { type Burst, startBurst, violationsOf } from '../harness/burst';
import { inParallel } from '../harness/parallel';
import { me, type ParsedResponse, tokenFor } from '../harness/requests';
import { startTestService } from '../harness/service';
import { stopAfterAll, stopAfterTest } from '../vitest/stop-after-all';
import { temporaryFolder } from '../vitest/temporary-folder';

const service = stopAfterAll(await startTestService({ processes: 2 }));
const migrations = temporaryFolder();

// A burst is a continuous load of requests for new users. An acknowledged user is one whose request got a 2xx response.

const statuses = ({ calls }: Burst) => [...new Set(calls.map(({ status }) => status))].sort();
/** Resolves when the number of acknowledged users has grown by more than `more`. */
const acknowledges = (burst: Burst, more: number) => {
  const before = burst.acknowledged().size;
  return expect.poll(() => burst.acknowledged().size - before).toBeGreaterThan(more);
};

test('No request fails while a migration adds a column under load', async () => {
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
  expect(await violationsOf(service, burst)).toEqual([]);
});

test('When an empty cache replaces the cache under load, no request fails, and each process has at most one cache miss for each user', async () => {
  const users = Array.from({ length: 20 }, (_, index) => `user_cached_${index}`);
  const requests = users
    .map((id) => tokenFor(service.idp, id))
    .flatMap((token) => service.processes.map(({ url }) => ({ url, token })));
  const responses: (ParsedResponse & { cache: string | undefined; request: number })[] = [];
  const sendAll = () =>
    inParallel(8, requests, async ({ url, token }, request) => {
      const response = await me(url, token);
      const cache = response.headers.get('server-timing')?.match(/cache;desc=(\w+)/)?.[1];
      responses.push({ ...response, cache, request });
    });
  const { KV_REST_API_TOKEN: token = '' } = service.environment;
  const other = stopAfterTest(await startKvServer({ token, engine: memoryEngine() }));
  onTestFinished(() => service.kv.proxy.setTarget(service.kv.address));
  const { hostname: host, port } = new URL(other.url);

  await sendAll();
  const known = new Set(responses.splice(0).map(({ body }) => Object(body).userId));
  service.database.takeStatements();
  const inFlight = sendAll();
  await expect.poll(() => responses.length > 0, { interval: 1 }).toBe(true);
  service.kv.proxy.setTarget({ host, port: Number(port) });
  await inFlight;
  await sendAll();
  await sendAll();

  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(responses.map(({ body }) => Object(body).userId))).toEqual(known);
  const lookedUp = responses.filter(({ cache }) => cache === 'miss').map(({ request }) => request);
  expect(lookedUp.length, 'the cache was empty').toBeGreaterThan(0);
  expect(new Set(lookedUp).size, 'no process has two misses for a user').toBe(lookedUp.length);
  // A request whose cache call failed during the replacement continues without the cache. At most 8 requests were in flight.
  const bypassed = responses.filter(({ cache }) => cache === 'bypass').length;
  expect(bypassed).toBeLessThanOrEqual(8);
  const statements = service.database.takeStatements();
  expect(statements.filter((sql) => !sql.startsWith('SELECT'))).toEqual([]);
  expect(statements.length).toBeLessThanOrEqual(lookedUp.length + bypassed);
  expect(service.linesWith('cache skipped'), 'the cache stays in use').toEqual([]);
});
