import { setTimeout as pause } from 'node:timers/promises';
import { withService, withServiceOver } from '../../bench/with-service';
import { memoryEngine } from '../../dev/kv/memory';
import { startKvServer } from '../../dev/kv/server';
import { startBurst, violationsOf } from '../../tests/harness/burst';
import { startReplicatedPostgres } from '../../tests/harness/dependencies/replicated-postgres';
import { describeHistory } from '../../tests/harness/history';
import { inParallel } from '../../tests/harness/parallel';
import { me, tokenFor } from '../../tests/harness/requests';

/**
 * `npm run failover`: sends requests to two service processes during three failovers and measures the effect on the clients:
 * - The primary database is killed, and the synchronous standby replaces it.
 * - The primary database stops responding, and the synchronous standby replaces it.
 * - An empty cache replaces the cache.
 *
 * The service is not restarted. Exits with 1 in these cases:
 * - A request got a 200 or 201, but the user of the request has no row.
 * - A user has two ids, or two requests for one user got a 201.
 * - During a failover of the database, a request got no response or a status other than 200, 201 and 500.
 * - Before, during or after the failover of the cache, a request got a status other than 200.
 * - During the failover of the cache, the service ran more database statements than there were cache misses.
 */
const PROCESSES = 2;
const CALM_MS = 5_000;
/**
 * Time without a primary database. It is longer than the timeout of a query (3 s), so that queries exceed their timeout. It is
 * shorter than the timeout of a registration (8 s), so that a registration (the creation of a user's row) can continue after
 * the outage.
 */
const OUTAGE_MS = 6_000;
const CACHED_USERS = 1_000;

const toSeconds = (milliseconds: number) => Number((milliseconds / 1000).toFixed(2));

function report(title: string, figures: Record<string, number>, failed: boolean): void {
  console.log(title);
  console.table(figures);
  if (!failed) return;
  console.error(`Failed: ${title}.`);
  process.exitCode = 1;
}

/**
 * Kills the primary database and promotes the standby. With `isSilent`, the connections to the primary stay open without a
 * response, as after a machine failure. Without `isSilent`, the connections are reset.
 */
async function failOverDatabase(isSilent: boolean): Promise<void> {
  await withServiceOver(startReplicatedPostgres, { processes: PROCESSES }, async (service, postgres) => {
    const burst = await startBurst(service, 'failover');
    await pause(CALM_MS);
    const lost = performance.now();
    if (isSilent) await service.database.proxy.treat('black-hole');
    await postgres.killPrimary();
    await pause(OUTAGE_MS);
    await postgres.promoteStandby();
    await service.database.proxy.treat('forward');
    const switched = performance.now();
    await pause(CALM_MS);
    await burst.end();

    const recovered = service.processes.map(({ url }) => {
      const first = burst.calls.find(
        (call) => call.url === url && (call.status ?? 500) < 300 && call.endedAt > switched,
      );
      return (first?.endedAt ?? Number.POSITIVE_INFINITY) - switched;
    });
    const violations = await violationsOf(service, burst);
    const count = (statuses: readonly number[]) =>
      burst.calls.filter(({ status = 0 }) => statuses.includes(status)).length;
    const undocumented = burst.calls.length - count([200, 201, 500]);
    report(
      isSilent ? 'database: the primary stops responding' : 'database: the primary is killed',
      {
        'seconds until the standby replaced the primary': toSeconds(switched - lost),
        'seconds from the replacement until each process registered a user': toSeconds(
          Math.max(...recovered),
        ),
        'users acknowledged': burst.acknowledged().size,
        'responses with 500': count([500]),
        'calls without a response or with another status': undocumented,
      },
      violations.length + undocumented > 0,
    );
    console.log(describeHistory(burst.calls.length, violations));
  });
}

async function failOverCache(): Promise<void> {
  await withService({ processes: PROCESSES }, async (service) => {
    const requests = Array.from({ length: CACHED_USERS }, (_, index) =>
      tokenFor(service.idp, `user_cached_${index}`),
    ).flatMap((token) => service.processes.map(({ url }) => ({ url, token })));
    const userIds = new Set<string>();
    /** Statuses other than 200. */
    const failed: number[] = [];
    let misses = 0;
    const sendAll = () =>
      inParallel(16, requests, async ({ url, token }) => {
        const { status, body, headers } = await me(url, token);
        if (status !== 200) failed.push(status);
        else userIds.add(Object(body).userId);
        if (!headers.get('server-timing')?.includes('cache;desc=hit')) misses += 1;
      });
    await sendAll();
    const { KV_REST_API_TOKEN: token = '' } = service.environment;
    const other = await startKvServer({ token, engine: memoryEngine() });
    const { hostname: host, port } = new URL(other.url);
    service.database.takeStatements();
    misses = 0;
    const failedBefore = failed.length;
    const started = performance.now();
    const inFlight = sendAll();
    service.kv.proxy.setTarget({ host, port: Number(port) });
    await inFlight;
    const seconds = toSeconds(performance.now() - started);
    const statements = service.database.takeStatements().length;
    await sendAll();
    const later = service.database.takeStatements().length;
    service.kv.proxy.setTarget(service.kv.address);
    await other.stop();
    if (failed.length > 0) console.error(`Statuses other than 200: ${failed.join(', ')}`);
    for (const line of service.linesWith('"level":"error"').slice(0, 5)) console.error(line);
    report(
      'cache: an empty cache takes over the address',
      {
        users: CACHED_USERS,
        'requests (one per user and process)': requests.length,
        'seconds for all requests': seconds,
        'cache misses': misses,
        'database statements': statements,
        'database statements when all requests were repeated': later,
        'responses other than 200 before the failover': failedBefore,
        'responses other than 200 after the start of the failover': failed.length - failedBefore,
        'users with several ids': userIds.size - CACHED_USERS,
      },
      failed.length > 0 || userIds.size !== CACHED_USERS || statements > misses,
    );
  });
}

await failOverDatabase(false);
await failOverDatabase(true);
await failOverCache();
