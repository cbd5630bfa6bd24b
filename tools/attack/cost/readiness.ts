import { percentile } from '../../../bench/process-figures';
import { costAddresses, ordinaryRequest } from './addresses';
import { DIMENSIONS } from './dimensions';
import { type CostRequest, send, serialize } from './request';

/**
 * The most expensive requests that `npm run attack -- --cost` has found. Each entry has the part of the request that is large
 * (the dimension), the size of that part in bytes, and the method and path.
 */
export const WORST_SHAPES = [
  { dimension: 'query: one name repeated', bytes: 15_000, method: 'GET', path: '/health/alive' },
  { dimension: 'query: different names', bytes: 13_500, method: 'GET', path: '/health/alive' },
  { dimension: 'cookies: different names', bytes: 14_000, method: 'GET', path: '/users/v1/me' },
  { dimension: 'body: one-byte chunks with next-action', bytes: 100_000, method: 'POST', path: '/sign-in' },
  {
    dimension: 'webhook: body size, any svix-signature',
    bytes: 1_048_476,
    method: 'POST',
    path: '/webhooks/idp/v1/user-created',
  },
] as const;

const ATTACK_MS = 5_000;
const MIN_SAMPLES = 5;

/** Returns the request that an entry of `WORST_SHAPES` describes. */
export function worstRequest(
  { dimension: name, bytes, method, path }: (typeof WORST_SHAPES)[number],
  token: string,
): CostRequest {
  const dimension = DIMENSIONS.find((each) => each.name === name);
  const address = costAddresses('/').find((each) => each.path === path);
  if (!dimension || !address) throw new Error(`Unknown dimension "${name}" or path ${path}`);
  return dimension.grow(ordinaryRequest(address, method, token), bytes);
}

/**
 * Sends the expensive request again and again for at least `ATTACK_MS`, each time after the previous response. Measures the
 * response times of GET /health/ready at the same time. Resolves with their median in milliseconds.
 */
export async function readinessUnder(serviceUrl: string, request: CostRequest): Promise<number> {
  const bytes = serialize(request);
  const ready = serialize({ method: 'GET', target: '/health/ready', headers: [] });
  let attacking = true;
  const attacker = async () => {
    while (attacking) await send(serviceUrl, bytes);
  };
  const attack = attacker();
  const times: number[] = [];
  for (const began = performance.now(); ; ) {
    const sent = performance.now();
    await send(serviceUrl, ready);
    times.push(performance.now() - sent);
    if (performance.now() - began > ATTACK_MS && times.length >= MIN_SAMPLES) break;
  }
  attacking = false;
  await attack;
  return percentile(times, 0.5);
}
