import { parseArgs } from 'node:util';
import { limitedHeap, memoryGrew, memoryLines, percentile, watchMemory } from '../../bench/process-figures';
import { withService } from '../../bench/with-service';
import { checkHistory, describeHistory, readRows } from '../../tests/harness/history';
import type { TestService } from '../../tests/harness/service';
import { type FaultLog, injectFaults, SHORTEST_SECONDS } from './fault-injection';
import { type Kind, prepareTraffic, type Traffic } from './traffic';

/**
 * `npm run soak`: sends mixed traffic at the highest possible rate for 195 s while the cache and the database fail and recover.
 * `-- --seconds 600` extends the run. With `--ids 100000`, the load continues after the last injected failure until 100,000
 * users have each had a successful request. Exits with 1 in these cases:
 * - A request failed, and an injected database failure does not explain the failure.
 * - The memory of a process grew.
 * - A user does not have exactly one row and one internal id.
 * - A webhook event was not acknowledged with a 200.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: String(1.5 * SHORTEST_SECONDS) },
    ids: { type: 'string', default: '0' },
    processes: { type: 'string', default: '2' },
    concurrency: { type: 'string', default: '24' },
  },
});
if (!(Number(values.seconds) >= SHORTEST_SECONDS)) {
  throw new Error(
    `--seconds must be at least ${SHORTEST_SECONDS}. In a shorter run, the service would not have time to recover between two injected failures, so an injected failure could explain any failed request.`,
  );
}

interface Outcome {
  readonly kind: Kind;
  readonly started: number;
  readonly ended: number;
  /** Undefined if there was no response. */
  readonly status: number | undefined;
}

/** Generates closed-loop load: each client sends its next request after the previous response. */
async function generateLoad(
  service: TestService,
  { kinds }: Traffic,
  shouldContinue: () => boolean,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const weightedKinds = kinds.flatMap((kind) => Array.from({ length: kind.share }, () => kind));
  const runClient = async (url: string) => {
    while (shouldContinue()) {
      const kind = weightedKinds[Math.floor(Math.random() * weightedKinds.length)];
      if (kind === undefined) return;
      const started = performance.now();
      const status = await kind.send(url).then(
        (response) => response.status,
        () => undefined,
      );
      outcomes.push({ kind, started, ended: performance.now(), status });
    }
  };
  const clients = Array.from({ length: Number(values.concurrency) }, (_, number) =>
    runClient(service.processes[number % service.processes.length]?.url ?? service.url),
  );
  await Promise.all(clients);
  return outcomes;
}

const isExpected = ({ kind, status }: Outcome) => status !== undefined && kind.statuses.includes(status);
const isExplained = (outcome: Outcome, faults: FaultLog) =>
  outcome.status === 500 && outcome.kind.needsDatabase && faults.during(outcome, 'database') !== undefined;

function report(outcomes: readonly Outcome[], faults: FaultLog): number {
  const states = new Map<string, Outcome[]>();
  for (const outcome of outcomes) {
    const fault = faults.during(outcome);
    const state = fault ? `${fault.dependency}: ${fault.treatment}` : 'no injected failure';
    const outcomesOfState = states.get(state);
    if (outcomesOfState) outcomesOfState.push(outcome);
    else states.set(state, [outcome]);
  }
  let unexplained = 0;
  const table: Record<string, object> = {};
  for (const [state, all] of states) {
    const durations = all.map(({ started, ended }) => ended - started);
    const failed = all.filter((outcome) => !isExpected(outcome));
    const unexplainedHere = failed.filter((outcome) => !isExplained(outcome, faults));
    unexplained += unexplainedHere.length;
    table[state] = {
      requests: all.length,
      'p50 ms': Math.round(percentile(durations, 0.5)),
      'p99 ms': Math.round(percentile(durations, 0.99)),
      'explained failures': failed.length - unexplainedHere.length,
      'unexplained failures': unexplainedHere.length,
    };
    for (const { kind, status } of unexplainedHere.slice(0, 5))
      console.error(`unexplained failure: ${kind.name}: ${status ?? 'no response'}`);
  }
  console.table(table);
  return unexplained;
}

await withService({ processes: Number(values.processes), environment: limitedHeap }, async (service) => {
  const traffic = await prepareTraffic(service);
  // This load is not measured. It lets the heap reach its normal size.
  const warmUp = performance.now() + Number(values.seconds) * 100;
  await generateLoad(service, traffic, () => performance.now() < warmUp);

  const memoryUsed = watchMemory(service);
  const started = performance.now();
  const milliseconds = Number(values.seconds) * 1000;
  const faults = injectFaults(service, milliseconds);
  const shouldContinue = () =>
    performance.now() < started + milliseconds || traffic.acknowledged.size < Number(values.ids);
  const outcomes = await generateLoad(service, traffic, shouldContinue);
  await faults.done;
  const memory = memoryUsed();
  const seconds = (performance.now() - started) / 1000;
  await traffic.redeliver();

  const unexplained = report(outcomes, faults);
  const rows = await readRows(service);
  const violations = checkHistory(traffic.calls, rows);
  console.table({
    'requests per second': Math.round(outcomes.length / seconds),
    'users acknowledged': traffic.acknowledged.size,
    rows: [...rows.values()].flat().length,
    'undelivered events': traffic.undelivered.size,
    ...memoryLines(memory),
  });
  console.log(describeHistory(traffic.calls.length, violations));
  const problems = [
    ...(unexplained > 0
      ? [`${unexplained} requests failed, and an injected database failure does not explain them`]
      : []),
    ...(violations.length > 0
      ? ['the rows and the responses of a user contradict each other (see the history of the calls above)']
      : []),
    ...(traffic.undelivered.size > 0 ? ['an event was not acknowledged'] : []),
    ...(memoryGrew(memory) ? ['memory grew'] : []),
  ];
  if (problems.length > 0) {
    console.error(`Failed: ${problems.join('; ')}.`);
    process.exitCode = 1;
  }
});
