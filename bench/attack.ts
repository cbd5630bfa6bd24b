import { parseArgs } from 'node:util';
import { attack } from '../tests/harness/hostile/attack';
import { hostileRequests } from '../tests/harness/hostile/hostile-request';
import { withService } from './with-service';

/**
 * `npm run attack`: sends generated hostile requests over raw sockets to the production build. No answer may be a 5xx,
 * nothing that a request holds may be printed, no connection may stay open, nobody may be registered.
 * `-- --requests 20000 --seed 7` sends others; the same seed sends the same ones.
 */
const { values } = parseArgs({
  options: { requests: { type: 'string', default: '10000' }, seed: { type: 'string' } },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
console.log(`seed ${seed}`);

await withService({ environment: { CLERK_FAPI_URL: '' } }, async (service) => {
  const problems = await attack(service, hostileRequests(Number(values.requests), seed), (sent) =>
    process.stdout.write(`${sent} sent\r`),
  );
  for (const problem of problems) console.log(problem);
  console.log(`${values.requests} requests, ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
});
