import { cpuMilliseconds } from '../process-figures';
import { type Figures, spreadOf } from './figures';
import type { Fixtures } from './fixtures';
import { type LoadRequest, openLoad } from './load';
import { hello, scenariosFor } from './scenarios';
import { bare, emptyMiddleware, service, type Target, tutorial } from './targets';

/** Names of scenarios (scenarios.ts). */
const HIT = 'hit, bearer, known credential';
const NO_CREDENTIAL = '401, no credential';
const WEBHOOK = 'webhook, duplicate';

/** Resolves with the CPU time, in milliseconds, that a new process uses until it has responded to its first request. */
async function cpuUntilFirstResponse(
  target: Target,
  fixtures: Fixtures,
  request: LoadRequest,
): Promise<number> {
  const server = await target.start(fixtures);
  const load = openLoad(server, 1);
  try {
    await load.send([request]);
    return cpuMilliseconds(server.pid);
  } finally {
    await load.close();
    await server.stop();
  }
}

/**
 * Measures the CPU time that new processes use until their first response. In each round, every pair of a target (a server)
 * and a request gets a new process. The processes run one after another. A ratio is relative to the first pair, the bare
 * Next.js route, in the same round.
 */
export async function measureColdStart(
  fixtures: Fixtures,
  rounds: number,
): Promise<NonNullable<Figures['coldStart']>> {
  const [greeting] = hello(1);
  if (!greeting) throw new Error('There is no request for the bare Next.js route.');
  const kinds: { target: Target; request: string; send: () => Promise<LoadRequest> }[] = [
    { target: bare, request: 'GET /hello', send: async () => greeting },
    { target: emptyMiddleware, request: 'GET /hello', send: async () => greeting },
  ];
  for (const target of [tutorial, service]) {
    // User ids contain the name of the target. With the suffix, they differ from the user ids in the other sections of the
    // benchmark.
    const scenarios = await scenariosFor({ ...target, name: `${target.name}_cold` }, fixtures);
    const prepare = async (name: string, count = 1) =>
      (await scenarios.find((scenario) => scenario.name === name)?.prepare(count)) ?? [];
    // Sends one request for each user of the scenario HIT. The shared cache then contains their ids, so that the measured
    // requests of this scenario are cache hits.
    const warm = await target.start(fixtures);
    const load = openLoad(warm, 1);
    await load.send(await prepare(HIT, 100));
    await load.close();
    await warm.stop();
    for (const request of [HIT, NO_CREDENTIAL, WEBHOOK]) {
      kinds.push({
        target,
        request,
        send: async () => {
          const [first] = await prepare(request);
          if (!first) throw new Error(`There is no scenario "${request}".`);
          return first;
        },
      });
    }
  }
  const measured = kinds.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, { target, send }] of kinds.entries()) {
      measured[index]?.push(await cpuUntilFirstResponse(target, fixtures, await send()));
    }
  }
  const [reference = []] = measured;
  return kinds.map(({ target, request }, index) => {
    const samples = measured[index] ?? [];
    return {
      target: target.name,
      request,
      ratio: spreadOf(samples.map((milliseconds, round) => milliseconds / (reference[round] ?? Number.NaN))),
      cpuMilliseconds: spreadOf(samples).median,
    };
  });
}
