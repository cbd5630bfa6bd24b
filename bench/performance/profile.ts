import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'undici';
import { z } from 'zod';
import { freePort } from '../../dev/system/listen';
import { type Figures, median } from './figures';
import type { Server } from './launch';
import { openLoad } from './load';
import { greeting, type Scenario, scenariosFor } from './scenarios';
import type { Surroundings } from './surroundings';
import { bare, emptyMiddleware, service, type Target } from './targets';

const CONNECTIONS = 32;
const WARM_UP = 20_000;
const SAMPLE = 3_000;
const INTERVAL_MICROSECONDS = 200;

const HIT = 'hit, bearer, known credential';
const SCENARIOS = [
  HIT,
  'hit, bearer, each credential new',
  'hit, cookie, each credential new',
  '401, no credential',
];

const Profile = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({
        functionName: z.string(),
        url: z.string(),
        lineNumber: z.number(),
        columnNumber: z.number(),
      }),
    }),
  ),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});
const Reply = z.object({ id: z.number(), result: z.unknown() });
const Inspected = z.array(z.object({ webSocketDebuggerUrl: z.string() }));

type Frame = z.infer<typeof Profile>['nodes'][number]['callFrame'];

const sourceMaps = new Map<string, SourceMap>();

/** The map that the build wrote beside a bundle. */
function sourceMapOf(url: string): SourceMap {
  const known = sourceMaps.get(url);
  if (known) return known;
  const file = `${url.startsWith('file:') ? fileURLToPath(url) : url}.map`;
  const made = new SourceMap(JSON.parse(readFileSync(file, 'utf8')));
  sourceMaps.set(url, made);
  return made;
}

/** Whose code a function of a bundle was before it was bundled. */
function ownerInBundle({ url, lineNumber, columnNumber }: Frame): string {
  const entry = sourceMapOf(url).findEntry(lineNumber, columnNumber);
  const source = 'originalSource' in entry ? decodeURIComponent(entry.originalSource) : '';
  const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source) ?? [];
  if (name === 'next') return 'bundles: Next.js';
  if (name?.startsWith('@clerk/')) return 'bundles: the provider’s SDK';
  if (name !== undefined || source.includes('/lib/generated/')) return 'bundles: other packages';
  return /\/(?:lib|app|middleware|instrumentation)\b/.test(source) ? 'bundles: ours' : 'bundles: other';
}

/** Whose code runs while a function does. */
function ownerOf(frame: Frame): string {
  const { functionName, url } = frame;
  if (functionName === '(idle)') return 'idle';
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (url.includes('/chunks/')) return ownerInBundle(frame);
  if (url.includes('/node_modules/next/')) return 'Next.js';
  if (/^node:internal\/(?:deps\/undici|webstreams)\//.test(url)) return 'Node.js: Request, Response, streams';
  if (/^node:(?:path|internal\/modules\/)/.test(url)) return 'Node.js: require and paths';
  return 'Node.js: all else, and the system';
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
 * does besides weighs on it, so shares say more than microseconds; and before that, how long an answer takes. Each process is
 * started anew and warmed up.
 */
export async function measureProfile(
  surroundings: Surroundings,
  start: (target: Target) => Promise<Server>,
): Promise<NonNullable<Figures['profile']>> {
  // Under a name of its own: another section may have made users for the service.
  const scenarios = await scenariosFor({ ...service, name: 'profiled' }, surroundings);
  const ofService = scenarios.filter(({ name }) => SCENARIOS.includes(name));
  const columns = (connections: number, ofThese: readonly Scenario[]) => [
    { target: bare, scenario: greeting, connections },
    { target: emptyMiddleware, scenario: greeting, connections },
    ...ofThese.map((scenario) => ({ target: service, scenario, connections })),
  ];
  const profiled = [
    ...columns(CONNECTIONS, ofService),
    ...columns(
      1,
      ofService.filter(({ name }) => name === HIT),
    ),
  ];
  const figures: NonNullable<Figures['profile']> = [];
  for (const { target, scenario, connections } of profiled) {
    const { name, prepare } = scenario;
    const port = await freePort();
    // What is started takes it from here.
    process.env['NODE_OPTIONS'] = `--inspect=127.0.0.1:${port}`;
    const server = await start(target).finally(() => delete process.env['NODE_OPTIONS']);
    const { call } = await inspect(port);
    const warmUp = openLoad(server, CONNECTIONS);
    await warmUp.send(await prepare(WARM_UP));
    await warmUp.close();
    const load = openLoad(server, connections);
    const p50Milliseconds = median((await load.send(await prepare(SAMPLE))).latencies);
    const requests = await prepare(SAMPLE);
    await call('Profiler.enable');
    await call('Profiler.setSamplingInterval', { interval: INTERVAL_MICROSECONDS });
    await call('Profiler.start');
    await load.send(requests);
    const { profile } = z.object({ profile: Profile }).parse(await call('Profiler.stop'));
    const microseconds = Object.fromEntries(
      [...byOwner(profile)].map(([owner, milliseconds]) => [owner, (milliseconds / SAMPLE) * 1000]),
    );
    figures.push({ target: target.name, scenario: name, connections, microseconds, p50Milliseconds });
    await load.close();
    await server.stop();
  }
  return figures;
}
