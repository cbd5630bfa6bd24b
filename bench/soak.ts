import { parseArgs } from 'node:util';
import type { TestService } from '../tests/harness/service';
import { breakThings, type FaultLog, SHORTEST_SECONDS } from './faults';
import { boundedHeap, memoryGrew, memoryLines, percentile, watchMemory } from './process-figures';
import { type Kind, prepareTraffic, type Traffic } from './traffic';
import { withService } from './with-service';

/**
 * `npm run soak`: mixed traffic at the highest rate that the machine holds, while cache and database fail and come
 * back. Ends with 1 if a request failed that no fault explains, if memory grew, or if a user has not exactly one row.
 * `-- --seconds 600` prolongs it; with `--ids 100000` it goes on, undisturbed, until so many users were seen.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '120' },
    ids: { type: 'string', default: '0' },
    processes: { type: 'string', default: '2' },
    concurrency: { type: 'string', default: '24' },
  },
});
if (!(Number(values.seconds) >= SHORTEST_SECONDS)) {
  throw new Error(
    `--seconds: at least ${SHORTEST_SECONDS}; in less, the faults would explain nearly every failure.`,
  );
}

interface Outcome {
  readonly kind: Kind;
  readonly started: number;
  readonly ended: number;
  /** Absent: no answer at all. */
  readonly status: number | undefined;
}

/** A closed loop: each sender begins its next request when its last is answered. */
async function drive(service: TestService, { kinds }: Traffic, goOn: () => boolean): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const wheel = kinds.flatMap((kind) => Array.from({ length: kind.share }, () => kind));
  const sendOn = async (url: string) => {
    while (goOn()) {
      const kind = wheel[Math.floor(Math.random() * wheel.length)];
      if (kind === undefined) return;
      const started = performance.now();
      const status = await kind.send(url).then(
        (answer) => answer.status,
        () => undefined,
      );
      outcomes.push({ kind, started, ended: performance.now(), status });
    }
  };
  const senders = Array.from({ length: Number(values.concurrency) }, (_, number) =>
    sendOn(service.processes[number % service.processes.length]?.url ?? service.url),
  );
  await Promise.all(senders);
  return outcomes;
}

const isRight = ({ kind, status }: Outcome) => status !== undefined && kind.statuses.includes(status);
const isExplained = (outcome: Outcome, faults: FaultLog) =>
  outcome.status === 500 && outcome.kind.needsDatabase && faults.during(outcome, 'database') !== undefined;

function report(outcomes: readonly Outcome[], faults: FaultLog): number {
  const states = new Map<string, Outcome[]>();
  for (const outcome of outcomes) {
    const fault = faults.during(outcome);
    const state = fault ? `${fault.part}: ${fault.treatment}` : 'calm';
    const others = states.get(state);
    if (others) others.push(outcome);
    else states.set(state, [outcome]);
  }
  let unexplained = 0;
  const table: Record<string, object> = {};
  for (const [state, all] of states) {
    const durations = all.map(({ started, ended }) => ended - started);
    const failed = all.filter((outcome) => !isRight(outcome));
    const odd = failed.filter((outcome) => !isExplained(outcome, faults));
    unexplained += odd.length;
    table[state] = {
      requests: all.length,
      'p50 ms': Math.round(percentile(durations, 0.5)),
      'p99 ms': Math.round(percentile(durations, 0.99)),
      'failed, explained': failed.length - odd.length,
      'failed, unexplained': odd.length,
    };
    for (const { kind, status } of odd.slice(0, 5)) console.error(`unexplained: ${kind.name} ${status}`);
  }
  console.table(table);
  return unexplained;
}

await withService({ processes: Number(values.processes), environment: boundedHeap }, async (service) => {
  const traffic = await prepareTraffic(service);
  // Until the heap has found its size, growth means nothing.
  const warmUp = performance.now() + Number(values.seconds) * 100;
  await drive(service, traffic, () => performance.now() < warmUp);

  const memoryUsed = watchMemory(service);
  const started = performance.now();
  const milliseconds = Number(values.seconds) * 1000;
  const faults = breakThings(service, milliseconds);
  const goOn = () =>
    performance.now() < started + milliseconds || traffic.acknowledged.size < Number(values.ids);
  const outcomes = await drive(service, traffic, goOn);
  await faults.done;
  const memory = memoryUsed();
  const seconds = (performance.now() - started) / 1000;
  await traffic.redeliver();

  const unexplained = report(outcomes, faults);
  const { rows } = await service.database.pool.query<{ id: string; idp: string }>(
    'SELECT id, identity_provider_user_id AS idp FROM users',
  );
  const idsOf = new Map(rows.map(({ id, idp }) => [idp, id]));
  const missing = [...traffic.acknowledged].filter((id) => !idsOf.has(id));
  const ambiguous = [...traffic.linked].filter(
    ([idp, ids]) => ids.size !== 1 || !ids.has(idsOf.get(idp) ?? ''),
  );
  console.table({
    'requests a second': Math.round(outcomes.length / seconds),
    'users acknowledged': traffic.acknowledged.size,
    rows: rows.length,
    'users with several rows': rows.length - idsOf.size,
    'acknowledged users without a row': missing.length,
    'users with several internal ids': ambiguous.length,
    'events never delivered': traffic.undelivered.size,
    ...memoryLines(memory),
  });
  const broken = [
    ...(unexplained > 0 ? [`${unexplained} failures that no fault explains`] : []),
    ...(rows.length !== idsOf.size || missing.length + ambiguous.length + traffic.undelivered.size > 0
      ? ['not exactly one row a user']
      : []),
    ...(memoryGrew(memory) ? ['memory grew'] : []),
  ];
  if (broken.length > 0) {
    console.error(`Broken: ${broken.join('; ')}.`);
    process.exitCode = 1;
  }
});
