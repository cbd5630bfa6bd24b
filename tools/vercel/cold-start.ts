import { cpuMilliseconds, percentile } from '../../bench/process-figures';
import { residentMegabytes } from '../../tests/harness/proc';
import { ME, me, send, tokenFor } from '../../tests/harness/requests';
import type { TestDependencies } from '../../tests/harness/service';
import type { Deployment } from './deployment';
import type { BuiltFunction } from './function';

const ROUNDS = 5;

/**
 * Returns a request that reaches the given function. The functions of the icon and of the global error page are called
 * directly, without the emulation of Vercel's router (router.ts), because ordinary requests rarely reach them.
 */
function firstRequest(
  { name, invoke }: BuiltFunction,
  { url, middleware, at }: Deployment,
  dependencies: TestDependencies,
) {
  const invokeDirectly = (address: string) => () =>
    invoke({ method: 'GET', url: address, headers: { 'x-matched-path': address }, body: Buffer.alloc(0) });
  if (name === middleware.name)
    return { request: 'GET /health/alive', run: () => send(`${url}/health/alive`) };
  if (name === at(ME).name) {
    const token = tokenFor(dependencies.idp, 'user_cold');
    return { request: `GET ${ME}, from the cache`, run: () => me(url, token) };
  }
  if (name === at('/').name) return { request: 'GET /', run: () => send(url) };
  if (name === '_not-found') return { request: 'GET /no-such-page', run: () => send(`${url}/no-such-page`) };
  const address = name.startsWith('_global-error') ? '/_global-error' : '/icon.svg';
  return { request: `GET ${address}, without the router`, run: invokeDirectly(address) };
}

/** Measures the first request to each function in five new processes, one after another. Returns the medians. */
export async function measureFunctions(deployment: Deployment, dependencies: TestDependencies) {
  await me(deployment.url, tokenFor(dependencies.idp, 'user_cold'));
  const figures: Record<string, string | number>[] = [];
  for (const each of deployment.functions) {
    const { request, run } = firstRequest(each, deployment, dependencies);
    const measured: { ms: number; cpu: number; resident: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await each.stop();
      const started = performance.now();
      await run();
      const ms = performance.now() - started;
      const { pid } = each.instance() ?? {};
      if (pid === undefined) throw new Error(`${each.name} has ended.`);
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
      'CPU, ms': median('cpu'),
      'resident, MB': median('resident'),
    });
  }
  return figures;
}
