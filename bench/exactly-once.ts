import { parseArgs } from 'node:util';
import { arrive } from '../tests/support/arrivals';
import { boundedHeap, watchMemory } from './process-figures';
import { withService } from './with-service';

/**
 * `npm run exactly-once`: every user arrives by guard, register and webhook at once, over several processes, in
 * random order with duplicates. Ends with 1 unless each has one row, one internal id and at most one 201.
 * `-- --users 100000` also shows that memory does not grow with the number of ids.
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

await withService({ processes: Number(values.processes), environment: boundedHeap }, async (service) => {
  const memoryUsed = watchMemory(service);
  const figures = await arrive(service, {
    users,
    concurrency: Number(values.concurrency),
    seed: Number(values.seed),
  });
  const memory = memoryUsed();
  const failed =
    figures.rows !== users ||
    figures.usersWithoutOneRow + figures.usersWithSeveralIds + figures.usersCreatedTwice > 0 ||
    figures.errors.length > 0;
  console.table({
    users,
    processes: service.processes.length,
    seed: Number(values.seed),
    ...figures,
    seconds: Math.round(figures.seconds),
    errors: figures.errors.length,
    'megabytes, first quarter': memory.map(({ first }) => Math.round(first)).join(', '),
    'megabytes, last quarter': memory.map(({ last }) => Math.round(last)).join(', '),
  });
  if (failed) {
    console.error(`Broken. ${[...new Set(figures.errors)].slice(0, 10).join(', ')}`);
    process.exitCode = 1;
  }
});
