import { percentile } from '../process-figures';
import { type RequestFigures, spreadOf } from './figures';
import type { Server } from './launch';
import { type Load, type LoadFigures, openLoad } from './load';
import { greeting, hello, type Scenario, scenariosFor } from './scenarios';
import type { Surroundings } from './surroundings';
import { bare, emptyMiddleware, type Target } from './targets';

/** How many connections ask at a time, and how much. */
export interface Level {
  readonly connections: number;
  readonly rounds: number;
  /** Requests to one target in one round; the reference answers as many before the targets, and as many after them. */
  readonly sample: number;
  /** So many samples of a scenario go before its first round, uncounted: code that has not run often is slow. */
  readonly samplesAhead: number;
}

export interface RequestOptions {
  readonly targets: readonly Target[];
  readonly levels: readonly Level[];
  /** Sent to each target before anything is measured, of all scenarios together. */
  readonly warmUp: number;
  /** The scenarios to measure, by name; absent: all. */
  readonly wanted?: RegExp;
  /** Users who have a row already; absent: some are made. */
  readonly rows?: Parameters<typeof scenariosFor>[2];
  readonly start: (target: Target) => Promise<Server>;
}

interface Running {
  readonly target: Target;
  readonly server: Server;
  readonly scenarios: readonly Scenario[];
}

const WARM_UP_CONNECTIONS = 32;
/** A process that had nothing to do for a while is slow for a moment: so many for each of a sample go before it, uncounted. */
const WAKE_UP = 1 / 6;

const merge = (all: readonly LoadFigures[]): LoadFigures => ({
  requests: all.reduce((total, { requests }) => total + requests, 0),
  cpuMilliseconds: all.reduce((total, each) => total + each.cpuMilliseconds, 0),
  milliseconds: all.reduce((total, { milliseconds }) => total + milliseconds, 0),
  latencies: all.flatMap(({ latencies }) => latencies),
});

const each = ({ cpuMilliseconds, requests }: LoadFigures) => cpuMilliseconds / requests;

/**
 * Processor time, throughput and latency of every scenario on every target. In each round the targets are asked one after
 * the other, with the reference before and behind them: whatever else the machine does weighs on all.
 */
export async function measureRequests(
  surroundings: Surroundings,
  { targets, levels, warmUp, wanted = /^/, rows, start }: RequestOptions,
): Promise<RequestFigures[]> {
  const reference = await start(bare);
  const running: Running[] = [];
  for (const target of targets) {
    const scenarios = target.hasRoutes ? await scenariosFor(target, surroundings, rows) : [greeting];
    running.push({
      target,
      server: await start(target),
      scenarios: scenarios.filter(({ name }) => target === emptyMiddleware || wanted.test(name)),
    });
  }

  const warm = async (server: Server, scenarios: readonly Scenario[]) => {
    for (const { prepare } of scenarios) {
      // To make thousands of requests takes seconds, in one go: a connection that is open meanwhile is ended by the server.
      const requests = await prepare(Math.ceil(warmUp / scenarios.length));
      const load = openLoad(server, WARM_UP_CONNECTIONS);
      await load.send(requests);
      await load.close();
    }
  };
  await warm(reference, [greeting]);
  for (const { server, scenarios } of running) await warm(server, scenarios);

  const figures: RequestFigures[] = [];
  for (const { connections, rounds, sample, samplesAhead } of levels) {
    const wakeUp = Math.ceil(sample * WAKE_UP);
    const base = openLoad(reference, connections);
    const loads = new Map<Target, Load>(
      running.map(({ target, server }) => [target, openLoad(server, connections)]),
    );
    const names = [...new Set(running.flatMap(({ scenarios }) => scenarios.map(({ name }) => name)))];
    for (const name of names) {
      const asked = running.flatMap(({ target, scenarios }) => {
        const scenario = scenarios.find((candidate) => candidate.name === name);
        const load = loads.get(target);
        return scenario && load ? [{ target, scenario, load }] : [];
      });
      for (let ahead = 0; ahead < samplesAhead; ahead += 1) {
        await base.send(hello(sample));
        for (const { scenario, load } of asked) await load.send(await scenario.prepare(sample));
      }
      const bases: LoadFigures[] = [];
      const measured = new Map<string, LoadFigures[]>([[bare.name, bases]]);
      for (let round = 0; round < rounds; round += 1) {
        await base.send(hello(wakeUp));
        const before = await base.send(hello(sample));
        for (const { target, scenario, load } of asked) {
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
          ratio: spreadOf(own.map((round, index) => each(round) / each(bases[index] ?? round))),
          cpuMicroseconds: each(all) * 1000,
          perSecond: (all.requests / all.milliseconds) * 1000,
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
