import { setTimeout as pause } from 'node:timers/promises';
import { residentMegabytes } from '../../tests/harness/proc';
import type { Figures } from './figures';
import type { Server } from './launch';
import { type LoadRequest, openLoad } from './load';
import { hello, scenariosFor } from './scenarios';
import type { Surroundings } from './surroundings';
import { bare, service, type Target, tutorial } from './targets';

const BATCH = 2_000;
const CONNECTIONS = 32;
/** After a burst, what is garbage is freed within seconds. */
const SETTLE_MILLISECONDS = 10_000;

/** Over new connections each time: while the next requests are prepared, the server ends those that are idle. */
async function send(server: Server, requests: readonly LoadRequest[]): Promise<void> {
  const load = openLoad(server, CONNECTIONS);
  await load.send(requests);
  await load.close();
}

/** Memory of a process that has answered one request; of the service also after so many users, each a new one. */
export async function measureMemory(
  surroundings: Surroundings,
  users: number,
  start: (target: Target) => Promise<Server>,
): Promise<NonNullable<Figures['memory']>> {
  const targets: NonNullable<Figures['memory']>['targets'] = [];
  for (const target of [bare, tutorial, service]) {
    const server = await start(target);
    const scenarios = target.hasRoutes
      ? await scenariosFor({ ...target, name: `${target.name}_memory` }, surroundings)
      : [];
    const prepare = async (name: string, count: number) =>
      (await scenarios.find((scenario) => scenario.name === name)?.prepare(count)) ?? hello(count);
    const settledMegabytes = async () => {
      await pause(SETTLE_MILLISECONDS);
      return residentMegabytes(server.pid);
    };
    await send(server, await prepare('hit, bearer, known credential', 1));
    const atRestMegabytes = await settledMegabytes();
    if (target === service) {
      for (let seen = 0; seen < users; seen += BATCH) await send(server, await prepare('first sight', BATCH));
      targets.push({ target: target.name, atRestMegabytes, afterMegabytes: await settledMegabytes() });
    } else {
      targets.push({ target: target.name, atRestMegabytes });
    }
    await server.stop();
  }
  return { users, targets };
}
