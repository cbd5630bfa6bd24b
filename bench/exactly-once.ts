import { parseArgs } from 'node:util';
import { arrive } from '../tests/harness/arrivals';
import { boundedHeap, memoryGrew, memoryLines, watchMemory } from './process-figures';
import { withService } from './with-service';

/**
 * `npm run exactly-once`: every user arrives by guard, register and webhook at once, over several processes, in
 * random order with duplicates. Ends with 1 unless each has one row, one internal id and at most one 201; and if
 * memory grew, which is judged only of a run of over two minutes, since growth means nothing until the heap has found
 * its size. `-- --users 100000` shows that memory does not grow with the number of ids.
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
const JUDGED_SECONDS = 120;

await withService({ processes: Number(values.processes), environment: boundedHeap }, async (service) => {
  const options = { users, concurrency: Number(values.concurrency), seed: Number(values.seed) };
  await arrive(service, { ...options, users: Math.ceil(users / 10), seed: options.seed + 1 });
  const memoryUsed = watchMemory(service);
  const figures = await arrive(service, options);
  const memory = memoryUsed();
  const grew = figures.seconds > JUDGED_SECONDS && memoryGrew(memory);
  const failed =
    figures.rows !== users ||
    figures.usersWithoutOneRow + figures.usersWithSeveralIds + figures.usersCreatedTwice > 0 ||
    figures.errors.length > 0 ||
    grew;
  console.table({
    users,
    processes: service.processes.length,
    seed: options.seed,
    ...figures,
    seconds: Math.round(figures.seconds),
    errors: figures.errors.length,
    ...memoryLines(memory),
  });
  if (failed) {
    console.error(
      `Broken. ${[...new Set(figures.errors), ...(grew ? ['memory grew'] : [])].slice(0, 10).join(', ')}`,
    );
    process.exitCode = 1;
  }
});
