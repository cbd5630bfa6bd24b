import { percentile } from '../process-figures';
import { type RequestFigures, spreadOf } from './figures';
import type { Fixtures } from './fixtures';
import type { Server } from './launch';
import { type Load, type LoadFigures, openLoad } from './load';
import { greeting, hello, type Scenario, scenariosFor } from './scenarios';
import { bare, emptyMiddleware, type Target } from './targets';

/** Load of a measurement. A target is a measured server. A scenario is a kind of request. */
export interface Level {
  readonly connections: number;
  readonly rounds: number;
  /**
   * Requests per target and scenario in each round. The bare Next.js route, the reference, gets this number of requests twice:
   * before the targets and after the targets.
   */
  readonly sample: number;
  /**
   * Before the first round of a scenario, each target gets this number of unmeasured samples, over the connections of this
   * level.
   */
  readonly warmUpSamples: number;
}

export interface RequestOptions {
  readonly targets: readonly Target[];
  readonly levels: readonly Level[];
  /**
   * Number of requests to each target before the first level, divided among its scenarios. During these requests, V8 optimizes
   * the code of the target.
   */
  readonly warmUp: number;
  /** Pattern for the names of the scenarios. Default: all scenarios. */
  readonly wanted?: RegExp;
  /** Users that already have a row. Default: `scenariosFor` creates them. */
  readonly rows?: Parameters<typeof scenariosFor>[2];
  readonly start: (target: Target) => Promise<Server>;
}

interface Running {
  readonly target: Target;
  readonly server: Server;
  readonly scenarios: readonly Scenario[];
}

const WARM_UP_CONNECTIONS = 32;
/**
 * Size of the unmeasured sample before each measured sample, as a fraction of the measured sample. The unmeasured sample is
 * necessary because an idle process is slow at first.
 */
const WAKE_UP_SHARE = 1 / 6;

const merge = (all: readonly LoadFigures[]): LoadFigures => ({
  requests: all.reduce((total, { requests }) => total + requests, 0),
  cpuMilliseconds: all.reduce((total, each) => total + each.cpuMilliseconds, 0),
  milliseconds: all.reduce((total, { milliseconds }) => total + milliseconds, 0),
  latencies: all.flatMap(({ latencies }) => latencies),
});

const cpuPerRequest = ({ cpuMilliseconds, requests }: LoadFigures) => cpuMilliseconds / requests;

/**
 * Measures CPU time and latency of each scenario on the targets that have the scenario. Each round measures the reference,
 * the targets, and the reference again. Other load on the machine therefore affects reference and targets about equally.
 */
export async function measureRequests(
  fixtures: Fixtures,
  { targets, levels, warmUp, wanted = /^/, rows, start }: RequestOptions,
): Promise<RequestFigures[]> {
  const reference = await start(bare);
  const running: Running[] = [];
  for (const target of targets) {
    const scenarios = target.hasRoutes ? await scenariosFor(target, fixtures, rows) : [greeting];
    running.push({
      target,
      server: await start(target),
      // `wanted` selects scenarios of the service. It does not apply to `emptyMiddleware`, which has only `GET /hello`.
      scenarios: scenarios.filter(({ name }) => target === emptyMiddleware || wanted.test(name)),
    });
  }

  const warm = async (server: Server, scenarios: readonly Scenario[]) => {
    for (const { prepare } of scenarios) {
      // The connections open after the preparation, because it can take seconds and the server closes idle connections.
      const requests = await prepare(Math.ceil(warmUp / scenarios.length));
      const load = openLoad(server, WARM_UP_CONNECTIONS);
      await load.send(requests);
      await load.close();
    }
  };
  await warm(reference, [greeting]);
  for (const { server, scenarios } of running) await warm(server, scenarios);

  const figures: RequestFigures[] = [];
  for (const { connections, rounds, sample, warmUpSamples } of levels) {
    const wakeUp = Math.ceil(sample * WAKE_UP_SHARE);
    const base = openLoad(reference, connections);
    const loads = new Map<Target, Load>(
      running.map(({ target, server }) => [target, openLoad(server, connections)]),
    );
    const names = [...new Set(running.flatMap(({ scenarios }) => scenarios.map(({ name }) => name)))];
    for (const name of names) {
      const measuredTargets = running.flatMap(({ target, scenarios }) => {
        const scenario = scenarios.find((candidate) => candidate.name === name);
        const load = loads.get(target);
        return scenario && load ? [{ target, scenario, load }] : [];
      });
      for (let count = 0; count < warmUpSamples; count += 1) {
        await base.send(hello(sample));
        for (const { scenario, load } of measuredTargets) await load.send(await scenario.prepare(sample));
      }
      const bases: LoadFigures[] = [];
      const measured = new Map<string, LoadFigures[]>([[bare.name, bases]]);
      for (let round = 0; round < rounds; round += 1) {
        await base.send(hello(wakeUp));
        const before = await base.send(hello(sample));
        for (const { target, scenario, load } of measuredTargets) {
          const requests = await scenario.prepare(sample);
          await load.send(await scenario.prepare(wakeUp));
          measured.set(target.name, [...(measured.get(target.name) ?? []), await load.send(requests)]);
        }
        await base.send(hello(wakeUp));
        bases.push(merge([before, await base.send(hello(sample))]));
      }
      for (const [target, own] of measured) {
        const all = merge(own);
        figures.push({
          scenario: name,
          connections,
          target,
          ratio: spreadOf(
            own.map((round, index) => cpuPerRequest(round) / cpuPerRequest(bases[index] ?? round)),
          ),
          cpuMicroseconds: cpuPerRequest(all) * 1000,
          p50Milliseconds: percentile(all.latencies, 0.5),
          p99Milliseconds: percentile(all.latencies, 0.99),
        });
      }
    }
    await base.close();
    for (const load of loads.values()) await load.close();
  }
  return figures;
}
