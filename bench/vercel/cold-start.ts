import { residentMegabytes } from '../../tests/harness/proc';
import { ME, me, send, tokenFor } from '../../tests/harness/requests';
import type { TestParts } from '../../tests/harness/service';
import { cpuMilliseconds, percentile } from '../process-figures';
import type { Deployment } from './deployment';
import type { BuiltFunction } from './function';

const ROUNDS = 5;

/** The request that each function is first asked by; those of files are asked past the router, which hardly ever does. */
function firstRequest(
  { name, invoke }: BuiltFunction,
  { url, middleware, at }: Deployment,
  parts: TestParts,
) {
  const directly = (address: string) => () =>
    invoke({ method: 'GET', url: address, headers: { 'x-matched-path': address }, body: Buffer.alloc(0) });
  if (name === middleware.name)
    return { request: 'GET /health/alive', ask: () => send(`${url}/health/alive`) };
  if (name === at(ME).name) {
    const token = tokenFor(parts.idp, 'user_cold');
    return { request: `GET ${ME}, from the cache`, ask: () => me(url, token) };
  }
  if (name === at('/').name) return { request: 'GET /', ask: () => send(url) };
  if (name === '_not-found') return { request: 'GET /no-such-page', ask: () => send(`${url}/no-such-page`) };
  const address = name.startsWith('_global-error') ? '/_global-error' : '/icon.svg';
  return { request: `GET ${address}, not by the router`, ask: directly(address) };
}

/** Each function, by the first request that a fresh process answers; medians. */
export async function functionFigures(deployment: Deployment, parts: TestParts) {
  await me(deployment.url, tokenFor(parts.idp, 'user_cold'));
  const figures: Record<string, string | number>[] = [];
  for (const each of deployment.functions) {
    const { request, ask } = firstRequest(each, deployment, parts);
    const measured: { ms: number; cpu: number; resident: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await each.stop();
      const started = performance.now();
      await ask();
      const ms = performance.now() - started;
      const { pid } = each.instance() ?? {};
      if (pid === undefined) throw new Error(`${each.name} did not stay up`);
      measured.push({ ms, cpu: cpuMilliseconds(pid), resident: residentMegabytes(pid) });
    }
    const median = (figure: 'ms' | 'cpu' | 'resident') =>
      Math.round(
        percentile(
          measured.map((one) => one[figure]),
          0.5,
        ),
      );
    figures.push({
      function: `\`${each.name}\``,
      'size, MB': Math.round(each.megabytes),
      'first request': request,
      'cold start, ms': median('ms'),
      'processor, ms': median('cpu'),
      'resident, MB': median('resident'),
    });
  }
  return figures;
}
