import { parseArgs } from 'node:util';
import { withService } from '../../bench/with-service';
import { attack } from '../../tests/harness/hostile/attack';
import { hostileRequests } from '../../tests/harness/hostile/hostile-request';

/**
 * `npm run attack`: sends generated hostile requests over raw sockets to the production build. Fails if a response has an
 * unexpected status (such as a 5xx) or contains a stack trace, or if the API responds with HTML. Also fails if the log contains
 * the marker text that many requests contain, if the server does not close the connection of a request within 12 s, or if a
 * user is registered.
 * `-- --requests 20000 --seed 7` changes the number of requests and the seed. The same seed generates the same requests.
 *
 * `npm run attack -- --cost`: measures the CPU time of requests of growing size. Fails if a request takes more than ten times
 * as long as the home page, if it takes more than five times as long as the ordinary (small) request to the same address, or if
 * its time grows faster than its size. A request is exempt if its additional time, compared with the ordinary request, is less
 * than the time of two home pages. Such a cost is acceptable, because an attacker can request pages as well. Some requests to
 * the webhook have different limits. Without `--only`, also fails if GET /health/ready is slow during expensive requests.
 * Requires Linux.
 *
 * `--only '/sign-in query'` measures only the requests whose method, path and dimension (the part that grows) match this
 * regular expression. `--quick` measures fewer sizes.
 */
const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '10000' },
    seed: { type: 'string' },
    cost: { type: 'boolean', default: false },
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
  },
});

async function attackWithHostileRequests(): Promise<void> {
  const requests = Number(values.requests);
  if (!(requests >= 1)) throw new Error('--requests must be the number of requests, such as 20000.');
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  if (!Number.isInteger(seed)) throw new Error('--seed must be an integer, such as 7.');
  console.log(`seed ${seed}`);
  await withService({ environment: { CLERK_FAPI_URL: '' } }, async (service) => {
    const problems = await attack(service, hostileRequests(requests, seed), (sent) =>
      process.stdout.write(`${sent} sent\r`),
    );
    for (const problem of problems) console.log(problem);
    console.log(`${requests} requests, ${problems.length} problems`);
    process.exitCode = problems.length === 0 ? 0 : 1;
  });
}

if (values.cost) {
  // cost/main.ts reads /proc when it is loaded, so it is imported only for `--cost`.
  const { attackCosts } = await import('./cost/main');
  await attackCosts({ only: values.only, quick: values.quick });
} else {
  await attackWithHostileRequests();
}
