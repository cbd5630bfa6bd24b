import { parseArgs } from 'node:util';
import { inParallel } from '../tests/support/parallel';
import { me, send, tokenFor } from '../tests/support/requests';
import { cpuMilliseconds, percentile } from './process-figures';
import { withService } from './with-service';

/**
 * `npm run bench`: what the guard costs. Processor time of the service's process for one request of each kind,
 * measured in turns in one run, so that whatever else the machine does weighs on all of them; the ratios are the
 * result, the milliseconds are this machine's.
 */
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, requests: { type: 'string', default: '400' } },
});
const requests = Array.from({ length: Number(values.requests) });
const rounds = Number(values.rounds);

await withService({ processes: 1 }, async (service) => {
  const pid = service.processes[0]?.pid ?? 0;
  const token = tokenFor(service.idp, 'user_bench', { exp: Math.floor(Date.now() / 1000) + 3600 });
  const key = 'auth:user-id-by-idp:user_bench';
  const kinds: Record<string, { status: number; request: () => Promise<{ status: number }> }> = {
    // A JSON route without the guard: the framework, the provider's middleware and one log line.
    'bare route': { status: 404, request: () => send(`${service.url}/users/v1/unknown`) },
    'guard, unauthenticated': { status: 401, request: () => send(`${service.url}/users/v1/me`) },
    'guard, cache hit': { status: 200, request: () => me(service.url, token) },
    'guard, cache miss': {
      status: 200,
      request: async () => {
        await service.kv.engine.call('DEL', key);
        return me(service.url, token);
      },
    },
  };
  const measured = new Map<string, number[]>();
  for (let round = 0; round <= rounds; round += 1) {
    for (const [kind, { status, request }] of Object.entries(kinds)) {
      const before = cpuMilliseconds(pid);
      // One at a time for misses: look-ups under way together are shared.
      await inParallel(kind.endsWith('miss') ? 1 : 4, requests, async () => {
        const answer = await request();
        if (answer.status !== status) throw new Error(`${kind}: ${answer.status}`);
      });
      const each = (cpuMilliseconds(pid) - before) / requests.length;
      // The first round warms up.
      if (round > 0) measured.set(kind, [...(measured.get(kind) ?? []), each]);
    }
    service.kv.takeCommands();
    service.database.takeStatements();
  }
  const median = (kind: string) => percentile(measured.get(kind) ?? [], 0.5);
  console.table(
    Object.fromEntries(
      Object.keys(kinds).map((kind) => [
        kind,
        {
          'CPU ms per request': median(kind).toFixed(2),
          'times a bare route': (median(kind) / median('bare route')).toFixed(2),
        },
      ]),
    ),
  );
});
