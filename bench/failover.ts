import { setTimeout as pause } from 'node:timers/promises';
import { memoryEngine } from '../dev/kv/memory';
import { startKvServer } from '../dev/kv/server';
import { brokenLinks, startBurst } from '../tests/harness/burst';
import { inParallel } from '../tests/harness/parallel';
import { startReplicatedPostgres } from '../tests/harness/parts/replicated-postgres';
import { me, tokenFor } from '../tests/harness/requests';
import { withService, withServiceOver } from './with-service';

/**
 * `npm run failover`: what it costs those who go on asking when the database's primary is lost in a burst and its
 * synchronous standby takes the address, and when another cache with nothing in it does. Two processes of the service, which
 * nobody restarts. Ends with 1 if somebody acknowledged is missing, was told two ids or got an answer that is not documented.
 */
const PROCESSES = 2;
const CALM_MS = 5_000;
/** From the loss to the promotion: longer than the service waits for any answer. */
const OUTAGE_MS = 6_000;
const CACHED_USERS = 1_000;

const toSeconds = (milliseconds: number) => Number((milliseconds / 1000).toFixed(2));

function report(title: string, figures: Record<string, number>, broken: boolean): void {
  console.log(title);
  console.table(figures);
  if (!broken) return;
  console.error('Broken.');
  process.exitCode = 1;
}

/** `dark`: connections to the primary stay open and say nothing, as when its machine is gone; else they are reset. */
async function loseDatabase(dark: boolean): Promise<void> {
  await withServiceOver(startReplicatedPostgres, { processes: PROCESSES }, async (service, postgres) => {
    const burst = await startBurst(service, 'failover');
    await pause(CALM_MS);
    const lost = performance.now();
    if (dark) await service.database.proxy.treat('black-hole');
    await postgres.killPrimary();
    await pause(OUTAGE_MS);
    await postgres.promoteStandby();
    await service.database.proxy.treat('forward');
    const switched = performance.now();
    await pause(CALM_MS);
    await burst.end();

    const back = service.processes.map(({ url }) => {
      const first = burst.answers.find(
        (answer) => answer.url === url && answer.status < 300 && answer.at > switched,
      );
      return (first?.at ?? Number.POSITIVE_INFINITY) - switched;
    });
    const { missing, ambiguous } = await brokenLinks(service, burst);
    const count = (statuses: readonly number[]) =>
      burst.answers.filter(({ status }) => statuses.includes(status)).length;
    const undocumented = burst.answers.length - count([200, 201, 500]);
    report(
      dark ? 'database: the primary is gone dark' : 'database: the primary is killed',
      {
        'seconds until the address led to the promoted standby': toSeconds(switched - lost),
        'seconds from then until each process had registered somebody': toSeconds(Math.max(...back)),
        'users acknowledged': burst.acknowledged().size,
        'acknowledged users who are missing': missing.length,
        'users with several ids': ambiguous.length,
        'answers of 500': count([500]),
        'answers that are not documented': undocumented,
      },
      missing.length + ambiguous.length + undocumented > 0,
    );
  });
}

async function loseCache(): Promise<void> {
  await withService({ processes: PROCESSES }, async (service) => {
    const questions = Array.from({ length: CACHED_USERS }, (_, index) =>
      tokenFor(service.idp, `user_cached_${index}`),
    ).flatMap((token) => service.processes.map(({ url }) => ({ url, token })));
    const told = new Set<string>();
    let failed = 0;
    let lookUps = 0;
    const askAll = () =>
      inParallel(16, questions, async ({ url, token }) => {
        const { status, body, headers } = await me(url, token);
        if (status !== 200) failed += 1;
        else told.add(Object(body).userId);
        if (!headers.get('server-timing')?.includes('cache;desc=hit')) lookUps += 1;
      });
    await askAll();
    const { KV_REST_API_TOKEN: token = '' } = service.environment;
    const other = await startKvServer({ token, engine: memoryEngine() });
    const { hostname: host, port } = new URL(other.url);
    service.database.takeStatements();
    lookUps = 0;
    const failedBefore = failed;
    const started = performance.now();
    const underWay = askAll();
    service.kv.proxy.lead({ host, port: Number(port) });
    await underWay;
    const seconds = toSeconds(performance.now() - started);
    const statements = service.database.takeStatements().length;
    await askAll();
    const later = service.database.takeStatements().length;
    service.kv.proxy.lead(service.kv.address);
    await other.stop();
    for (const line of service.linesWith('"level":"error"').slice(0, 5)) console.error(line);
    report(
      'cache: another one, empty, behind the same address',
      {
        users: CACHED_USERS,
        'requests, each user once at each process': questions.length,
        'seconds for these': seconds,
        'of these not found in the cache': lookUps,
        'statements of the database for these': statements,
        'statements when all were asked for again': later,
        'answers other than 200 when the cache was filled': failedBefore,
        'answers other than 200 since the switch': failed - failedBefore,
        'users with several ids': told.size - CACHED_USERS,
      },
      failed > 0 || told.size !== CACHED_USERS || statements > lookUps,
    );
  });
}

await loseDatabase(false);
await loseDatabase(true);
await loseCache();
