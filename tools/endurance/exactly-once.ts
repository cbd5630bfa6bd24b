import { parseArgs } from 'node:util';
import { limitedHeap, memoryGrew, memoryLines, watchMemory } from '../../bench/process-figures';
import { withService } from '../../bench/with-service';
import { describeHistory } from '../../tests/harness/history';
import { generateLoad } from '../../tests/harness/load-generator';

/**
 * `npm run exactly-once`: registers each user in three ways at the same time: through the guard (a request with a session), the
 * register route and the webhook. Sends these requests to several processes, in random order and with duplicates.
 * `-- --users 100000` extends the run, so that the memory is checked as well. Exits with 1 in these cases:
 * - A request fails.
 * - A user does not have exactly one row and one internal id.
 * - Two requests for one user get a 201.
 * - The memory of a process grew during a run of more than two minutes. In a shorter run, the memory is not checked, because
 *   the heap does not reach its normal size.
 */
const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '10000' },
    processes: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '48' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const users = Number(values.users);
const MIN_SECONDS_FOR_MEMORY_CHECK = 120;

await withService({ processes: Number(values.processes), environment: limitedHeap }, async (service) => {
  const options = { users, concurrency: Number(values.concurrency), seed: Number(values.seed) };
  await generateLoad(service, { ...options, users: Math.ceil(users / 10), seed: options.seed + 1 });
  const memoryUsed = watchMemory(service);
  const { violations, ...figures } = await generateLoad(service, options);
  const memory = memoryUsed();
  const grew = figures.seconds > MIN_SECONDS_FOR_MEMORY_CHECK && memoryGrew(memory);
  const problems = [
    ...new Set(figures.errors),
    ...(figures.rows === users ? [] : ['wrong number of rows']),
    ...(violations.length === 0
      ? []
      : ['the rows and the responses of a user contradict each other (see the history of the calls above)']),
    ...(grew ? ['memory grew'] : []),
  ];
  console.table({
    users,
    processes: service.processes.length,
    seed: options.seed,
    ...figures,
    seconds: Math.round(figures.seconds),
    errors: figures.errors.length,
    ...memoryLines(memory),
  });
  console.log(describeHistory(figures.requests, violations));
  if (problems.length > 0) {
    console.error(`Failed: ${problems.slice(0, 10).join(', ')}`);
    process.exitCode = 1;
  }
});
