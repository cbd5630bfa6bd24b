import { readFileSync, rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { deployMigrations } from '#lib/storage/migrations';
import { startPostgres } from '../dev/postgres/server';
import { endProcess } from '../dev/system/processes';
import { buildIfChanged } from '../tests/harness/build';
import { startBurst, violationsOf } from '../tests/harness/burst';
import { TEMPLATE } from '../tests/harness/dependencies/database';
import { type ServiceProcess, startServiceProcess, startTestService } from '../tests/harness/service';

/**
 * `npm run soak`: registers new users through two processes, each user in three ways at the same time, while processes are
 * killed and the cache and the database fail. At the end, the database is killed and restarted. `-- --seconds 600` repeats the
 * failures for ten minutes. Exits with 1 in these cases:
 * - A user does not have exactly one row and one internal id, or an acknowledged user has no row.
 * - The injected failure does not explain a failed request. Only a killed process explains a missing response, and only a
 *   failure of the database explains a 500.
 */
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '120' } } });
const CALM_MS = 5_000;
const OUTAGE_MS = 6_000;
/** Time after the end of a failure until no request fails. The service needs 3 s or more to detect a dead connection. */
const RECOVERY_MS = 10_000;

const started = performance.now();
const stops: (() => Promise<unknown>)[] = [];
const stop = async () => {
  for (const each of stops.splice(0).reverse()) await each();
};
const interrupt = () => void stop().finally(() => process.exit(130));
process.once('SIGINT', interrupt).once('SIGTERM', interrupt);

async function soak(): Promise<string[]> {
  await buildIfChanged();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'identity-link-tests-soak-'));
  stops.push(async () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  const startDatabase = async (port?: number) => {
    const started = await startPostgres({ folder, durable: true, ...(port ? { port } : {}) });
    stops.push(started.stop);
    return started;
  };
  const postgres = await startDatabase();
  const url = postgres.url('postgres');
  await deployMigrations(postgres.url(TEMPLATE));
  const service = await startTestService({ server: { url, template: TEMPLATE }, processes: 2 });
  stops.push(service.stop);
  const burst = await startBurst(service, 'soak', 24);
  const problems: string[] = [];
  const table: object[] = [];

  /** Runs a phase. Each call that ends in this phase must have a status below 300 or one of `failures`. */
  async function phase(
    name: string,
    failures: readonly unknown[],
    work: () => Promise<unknown>,
  ): Promise<void> {
    const from = burst.calls.length;
    await work();
    const calls = burst.calls.slice(from);
    const failed = calls.filter(({ status = 599 }) => status >= 300);
    const unexplained = failed.filter(({ status }) => !failures.includes(status));
    for (const { entryPoint, status } of unexplained.slice(0, 5))
      problems.push(`${name}: ${entryPoint} got ${status ?? 'no response'}`);
    table.push({ phase: name, calls: calls.length, failed: failed.length, unexplained: unexplained.length });
    console.log(`${name}: ${calls.length} calls, ${failed.length} failed`);
  }
  async function failure(
    name: string,
    failures: readonly unknown[],
    work: () => Promise<unknown>,
  ): Promise<void> {
    await phase(name, failures, async () => {
      await work();
      await pause(RECOVERY_MS);
    });
    await phase('calm', [], () => pause(CALM_MS));
  }
  const outage = async (dependency: 'kv' | 'database', treatment: 'refuse' | 'black-hole') => {
    await service[dependency].proxy.treat(treatment);
    await pause(OUTAGE_MS);
    await service[dependency].proxy.treat('forward');
  };
  let second: ServiceProcess | undefined = service.processes[1];
  async function restart(): Promise<void> {
    if (second === undefined) return;
    await endProcess(second.pid);
    second = await startServiceProcess(service.environment, Number(new URL(second.url).port));
    stops.push(second.stop);
  }

  await phase('calm', [], () => pause(CALM_MS));
  do {
    await failure('the cache refuses connections', [], () => outage('kv', 'refuse'));
    await failure('a process is killed and restarted', [undefined], restart);
    await failure('the cache does not respond', [], () => outage('kv', 'black-hole'));
    await failure('the database refuses connections', [500], () => outage('database', 'refuse'));
  } while (performance.now() - started < Number(values.seconds) * 1000);
  await failure('the database is killed and restarted', [500], async () => {
    const [pid] = readFileSync(path.join(postgres.dataFolder, 'postmaster.pid'), 'utf8').split('\n');
    await endProcess(Number(pid));
    await pause(OUTAGE_MS);
    await startDatabase(Number(new URL(url).port));
  });
  await burst.end();
  console.table(table);
  const violations = await violationsOf(service, burst);
  console.log(`${burst.acknowledged().size} users acknowledged, ${violations.length} broken guarantees`);
  return [...problems, ...violations.slice(0, 10)];
}

try {
  const problems = await soak();
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
} finally {
  await stop();
}
