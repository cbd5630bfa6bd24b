import { setTimeout as pause } from 'node:timers/promises';
import { residentMegabytes } from '../../tests/harness/proc';
import type { Figures } from './figures';
import type { Fixtures } from './fixtures';
import type { Server } from './launch';
import { type LoadRequest, openLoad } from './load';
import { hello, scenariosFor } from './scenarios';
import { bare, service, type Target, tutorial } from './targets';

const BATCH = 2_000;
const CONNECTIONS = 32;
/** Time for the garbage collector to free memory after a burst. */
const SETTLE_MILLISECONDS = 10_000;

/** Sends a batch of requests over new connections, because the server closes connections that are idle between batches. */
async function send(server: Server, requests: readonly LoadRequest[]): Promise<void> {
  const load = openLoad(server, CONNECTIONS);
  await load.send(requests);
  await load.close();
}

/**
 * Measures the memory of each target (server) after one request. For the service, also measures the memory after one request
 * from each of `users` new users.
 */
export async function measureMemory(
  fixtures: Fixtures,
  users: number,
  start: (target: Target) => Promise<Server>,
): Promise<NonNullable<Figures['memory']>> {
  const targets: NonNullable<Figures['memory']>['targets'] = [];
  for (const target of [bare, tutorial, service]) {
    const server = await start(target);
    // User ids contain the name of the target. The suffix `_memory` makes them differ from the ids of other measurements.
    const scenarios = target.hasRoutes
      ? await scenariosFor({ ...target, name: `${target.name}_memory` }, fixtures)
      : [];
    // A target without the routes of the service has no scenarios and gets `GET /hello`.
    const prepare = async (name: string, count: number) =>
      (await scenarios.find((scenario) => scenario.name === name)?.prepare(count)) ?? hello(count);
    const settledMegabytes = async () => {
      await pause(SETTLE_MILLISECONDS);
      return residentMegabytes(server.pid);
    };
    await send(server, await prepare('hit, bearer, known credential', 1));
    const atRestMegabytes = await settledMegabytes();
    if (target === service) {
      for (let seen = 0; seen < users; seen += BATCH)
        await send(server, await prepare('first request of a user', BATCH));
      targets.push({ target: target.name, atRestMegabytes, afterMegabytes: await settledMegabytes() });
    } else {
      targets.push({ target: target.name, atRestMegabytes });
    }
    await server.stop();
  }
  return { users, targets };
}
