import { WebSocket } from 'undici';
import { z } from 'zod';
import { freePort } from '../../dev/system/listen';
import type { Figures } from './figures';
import type { Server } from './launch';
import { openLoad } from './load';
import { greeting, type Scenario, scenariosFor } from './scenarios';
import type { Surroundings } from './surroundings';
import { bare, emptyMiddleware, service, type Target } from './targets';

const CONNECTIONS = 32;
const WARM_UP = 6_000;
const SAMPLE = 3_000;
const INTERVAL_MICROSECONDS = 200;

const SCENARIOS = ['hit, bearer, known credential', 'hit, bearer, each credential new', '401, no credential'];

const Profile = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string() }),
    }),
  ),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});
const Reply = z.object({ id: z.number(), result: z.unknown() });
const Inspected = z.array(z.object({ webSocketDebuggerUrl: z.string() }));

/** Whose code a function is. The bundles hold ours, the provider's SDK and the other packages, one not told from the other. */
function ownerOf({ functionName, url }: { functionName: string; url: string }): string {
  if (functionName === '(idle)') return 'idle';
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (url.includes('/chunks/')) return 'the bundles: ours, the SDK, packages';
  if (url.includes('/node_modules/next/')) return 'Next.js';
  return 'Node.js and the system';
}

/** Milliseconds of the main thread by whose code ran, without what was idle. */
function byOwner({ nodes, samples, timeDeltas }: z.infer<typeof Profile>): Map<string, number> {
  const owners = new Map(nodes.map(({ id, callFrame }) => [id, ownerOf(callFrame)]));
  const times = new Map<string, number>();
  for (const [index, id] of samples.entries()) {
    const owner = owners.get(id) ?? 'idle';
    times.set(owner, (times.get(owner) ?? 0) + (timeDeltas[index] ?? 0) / 1000);
  }
  times.delete('idle');
  return times;
}

/** The inspector of a process; each call waits for its answer. */
async function inspect(port: number): Promise<{ call(method: string, params?: object): Promise<unknown> }> {
  const [inspected] = Inspected.parse(await (await fetch(`http://127.0.0.1:${port}/json`)).json());
  const socket = new WebSocket(inspected?.webSocketDebuggerUrl ?? '');
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
  let calls = 0;
  const waiting = new Map<number, (result: unknown) => void>();
  socket.addEventListener('message', ({ data }) => {
    const reply = Reply.safeParse(JSON.parse(String(data)));
    if (reply.success) waiting.get(reply.data.id)?.(reply.data.result);
  });
  return {
    call(method, params = {}) {
      calls += 1;
      socket.send(JSON.stringify({ id: calls, method, params }));
      return new Promise((resolve) => waiting.set(calls, resolve));
    },
  };
}

/**
 * Where a process spends the time of a request, by whose code runs, in wall time of its main thread: what the machine
 * does besides weighs on it, so shares say more than microseconds. Each process is started anew and warmed up.
 */
export async function measureProfile(
  surroundings: Surroundings,
  start: (target: Target) => Promise<Server>,
): Promise<NonNullable<Figures['profile']>> {
  // Under a name of its own: another section may have made users for the service.
  const scenarios = await scenariosFor({ ...service, name: 'profiled' }, surroundings);
  const profiled: (readonly [Target, Scenario])[] = [
    [bare, greeting],
    [emptyMiddleware, greeting],
    ...scenarios
      .filter(({ name }) => SCENARIOS.includes(name))
      .map((scenario) => [service, scenario] as const),
  ];
  const figures: NonNullable<Figures['profile']> = [];
  for (const [target, { name, prepare }] of profiled) {
    const port = await freePort();
    // What is started takes it from here.
    process.env['NODE_OPTIONS'] = `--inspect=127.0.0.1:${port}`;
    const server = await start(target).finally(() => delete process.env['NODE_OPTIONS']);
    const { call } = await inspect(port);
    const load = openLoad(server, CONNECTIONS);
    await load.send(await prepare(WARM_UP));
    const requests = await prepare(SAMPLE);
    await call('Profiler.enable');
    await call('Profiler.setSamplingInterval', { interval: INTERVAL_MICROSECONDS });
    await call('Profiler.start');
    await load.send(requests);
    const { profile } = z.object({ profile: Profile }).parse(await call('Profiler.stop'));
    const microseconds = Object.fromEntries(
      [...byOwner(profile)].map(([owner, milliseconds]) => [owner, (milliseconds / SAMPLE) * 1000]),
    );
    figures.push({ target: target.name, scenario: name, microseconds });
    await load.close();
    await server.stop();
  }
  return figures;
}
