import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { deployMigrations } from '#lib/storage/migrations';
import { type Burst, startBurst, violationsOf } from '../harness/burst';
import { startTestService } from '../harness/service';
import { stopAfterAll } from '../vitest/stop-after-all';
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
