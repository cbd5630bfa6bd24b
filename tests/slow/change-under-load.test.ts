import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startKvServer } from '../../dev/kv/server';
import { deployMigrations } from '../../lib/storage/migrations';
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

test('When an empty cache replaces the cache under load, no request fails, and every user keeps the internal id', async () => {
  const tokens = Array.from({ length: 20 }, (_, index) => tokenFor(service.idp, `user_cached_${index}`));
  const responses: ParsedResponse[] = [];
  const sendAll = () =>
    inParallel(8, tokens, async (token) => {
      for (const { url } of service.processes) responses.push(await me(url, token));
    });
  const { KV_REST_API_TOKEN: token = '' } = service.environment;
  const other = stopAfterTest(await startKvServer({ token }));
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
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(responses.map(({ body }) => Object(body).userId))).toEqual(known);
  expect(service.database.takeStatements().filter((sql) => !sql.startsWith('SELECT'))).toEqual([]);
  const cacheOf = async () => (await me(service.url, tokens[0] ?? '')).headers.get('server-timing');
  await expect.poll(cacheOf, { message: 'the new cache is used' }).toContain('cache;desc=hit');
});
