import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { deployMigrations } from '#lib/storage/migrations';
import { startPostgres } from '../dev/postgres/server';
import { endProcess } from '../dev/system/processes';
import { buildIfChanged } from '../tests/harness/build';
import { startBurst, violationsOf } from '../tests/harness/burst';
import { TEMPLATE } from '../tests/harness/dependencies/database';
import { startServiceProcess, startTestService } from '../tests/harness/service';
import { stopAfterTest } from '../tests/vitest/stop-after-all';
import { temporaryFolder } from '../tests/vitest/temporary-folder';

// `npm run soak` registers new users through two processes, each user in three ways at the same time, while processes are killed
// and the cache and the database fail. At the end, the database is killed and restarted. `SOAK_SECONDS=600` repeats the failures
// for ten minutes.

const SECONDS = Number(process.env['SOAK_SECONDS'] ?? 120);
const CALM_MS = 5_000;
const OUTAGE_MS = 6_000;
/** Time after the end of a failure until no request fails. The service needs 3 s or more to detect a dead connection. */
const RECOVERY_MS = 10_000;

await buildIfChanged();
const folder = temporaryFolder();

const startDatabase = (port?: number) => startPostgres({ folder, durable: true, ...(port ? { port } : {}) });

test(
  'While processes, the cache and the database fail, each acknowledged user has one row and one id, and the failure explains each failed request',
  async () => {
    let postgres = await startDatabase();
    onTestFinished(() => postgres.stop());
    const url = postgres.url('postgres');
    await deployMigrations(postgres.url(TEMPLATE));
    const service = stopAfterTest(
      await startTestService({ server: { url, template: TEMPLATE }, processes: 2 }),
    );
    const burst = await startBurst(service, 'soak', 24);

    /** Runs a phase. Each call that ends in this phase must have a status below 300 or one of `failures`. */
    const phase = async (name: string, failures: readonly unknown[], work: () => Promise<unknown>) => {
      const from = burst.calls.length;
      await work();
      const calls = burst.calls.slice(from);
      const failed = calls.filter(({ status = 599 }) => status >= 300);
      console.log(`${name}: ${calls.length} calls, ${failed.length} failed`);
      expect.soft(failed.filter(({ status }) => !failures.includes(status)).slice(0, 5), name).toEqual([]);
    };
    const failure = async (name: string, failures: readonly unknown[], work: () => Promise<unknown>) => {
      await phase(name, failures, async () => {
        await work();
        await pause(RECOVERY_MS);
      });
      await phase('calm', [], () => pause(CALM_MS));
    };
    const outage = async (dependency: 'kv' | 'database', treatment: 'refuse' | 'black-hole') => {
      await service[dependency].proxy.treat(treatment);
      await pause(OUTAGE_MS);
      await service[dependency].proxy.treat('forward');
    };
    let [, second] = service.processes;
    const restart = async () => {
      if (second === undefined) return;
      await endProcess(second.pid);
      const port = Number(new URL(second.url).port);
      second = stopAfterTest(await startServiceProcess(service.environment, port));
    };

    const startedAt = performance.now();
    await phase('calm', [], () => pause(CALM_MS));
    // Only a killed process explains a missing response, and only a failure of the database explains a 500.
    do {
      await failure('the cache refuses connections', [], () => outage('kv', 'refuse'));
      await failure('a process is killed and restarted', [undefined], restart);
      await failure('the cache does not respond', [], () => outage('kv', 'black-hole'));
      await failure('the database refuses connections', [500], () => outage('database', 'refuse'));
    } while (performance.now() - startedAt < SECONDS * 1_000);
    await failure('the database is killed and restarted', [500], async () => {
      const [pid] = readFileSync(path.join(postgres.dataFolder, 'postmaster.pid'), 'utf8').split('\n');
      await endProcess(Number(pid));
      await pause(OUTAGE_MS);
      postgres = await startDatabase(Number(new URL(url).port));
    });
    await burst.end();
    console.log(`${burst.acknowledged().size} users acknowledged`);
    expect((await violationsOf(service, burst)).slice(0, 10)).toEqual([]);
  },
  (SECONDS + 900) * 1_000,
);
