import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'undici';
import { z } from 'zod';
import { freePort } from '../../dev/system/listen';
import type { Figures } from './figures';
import type { Fixtures } from './fixtures';
import type { Server } from './launch';
import { openLoad } from './load';
import { greeting, scenariosFor } from './scenarios';
import { bare, emptyMiddleware, service, type Target } from './targets';

const CONNECTIONS = 32;
const WARM_UP_REQUESTS = 20_000;
const SAMPLE_REQUESTS = 3_000;
/** Interval between two samples of the profiler. */
const INTERVAL_MICROSECONDS = 200;

/** Names of the scenarios (kinds of requests) that this file measures on the service. */
const SCENARIOS = ['hit, bearer, known credential', 'hit, bearer, each credential new'];

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

/** Returns the source map of a bundle. */
function readSourceMap(url: string): SourceMap {
  const cached = sourceMaps.get(url);
  if (cached) return cached;
  const file = `${url.startsWith('file:') ? fileURLToPath(url) : url}.map`;
  const sourceMap = new SourceMap(JSON.parse(readFileSync(file, 'utf8')));
  sourceMaps.set(url, sourceMap);
  return sourceMap;
}

/**
 * Returns the owner of a function in a bundle. The path of the source file in the source map determines the owner, such as
 * Next.js.
 */
function findOwnerInBundle({ url, lineNumber, columnNumber }: Frame): string {
  const entry = readSourceMap(url).findEntry(lineNumber, columnNumber);
  const source = 'originalSource' in entry ? decodeURIComponent(entry.originalSource) : '';
  const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source) ?? [];
  if (name === 'next') return 'bundles: Next.js';
  if (name?.startsWith('@clerk/')) return 'bundles: the provider’s SDK';
  const isOwn =
    name === undefined && /\/(?:lib(?!\/generated)|app|middleware|instrumentation)\b/.test(source);
  return isOwn ? 'bundles: this project' : 'bundles: other';
}

/** Returns the owner of a stack frame. The report has one row for each owner and shows the total time of its frames. */
function findOwner(frame: Frame): string {
  const { functionName, url } = frame;
  if (functionName === '(idle)') return 'idle';
  if (functionName === '(garbage collector)') return 'garbage collection';
  if (url.includes('/chunks/')) return findOwnerInBundle(frame);
  if (url.includes('/node_modules/next/')) return 'Next.js';
  if (/^node:internal\/(?:deps\/undici|webstreams)\//.test(url)) return 'Node.js: Request, Response, streams';
  if (/^node:(?:path|internal\/modules\/)/.test(url)) return 'Node.js: module loading, node:path';
  // The other frames belong to further modules of Node.js, to native code or to no file, such as `(program)`.
  return 'Node.js: other, and the system';
}

/** Returns the busy time of the main thread in milliseconds for each owner. */
function sumByOwner({ nodes, samples, timeDeltas }: z.infer<typeof Profile>): Map<string, number> {
  const owners = new Map(nodes.map(({ id, callFrame }) => [id, findOwner(callFrame)]));
  const times = new Map<string, number>();
  for (const [index, id] of samples.entries()) {
    const owner = owners.get(id) ?? 'idle';
    times.set(owner, (times.get(owner) ?? 0) + (timeDeltas[index] ?? 0) / 1000);
  }
  times.delete('idle');
  return times;
}

/** Connects to the inspector of a Node.js process (Chrome DevTools Protocol). */
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
 * Measures the main-thread time per request for each owner of code, such as Next.js, Node.js or this project. Starts and warms
 * up a new process for each measurement.
 */
export async function measureProfile(
  fixtures: Fixtures,
  start: (target: Target) => Promise<Server>,
): Promise<NonNullable<Figures['profile']>> {
  // User ids contain the name of the target (the measured server). Other measurements may already have inserted users whose ids
  // contain `service`, so this function uses the name `profiled`.
  const scenarios = await scenariosFor({ ...service, name: 'profiled' }, fixtures);
  const serviceScenarios = scenarios.filter(({ name }) => SCENARIOS.includes(name));
  const profiled = [
    { target: bare, scenario: greeting },
    { target: emptyMiddleware, scenario: greeting },
    ...serviceScenarios.map((scenario) => ({ target: service, scenario })),
  ];
  const figures: NonNullable<Figures['profile']> = [];
  for (const { target, scenario } of profiled) {
    const { name, prepare } = scenario;
    const port = await freePort();
    // The process of the target inherits this variable.
    process.env['NODE_OPTIONS'] = `--inspect=127.0.0.1:${port}`;
    const server = await start(target).finally(() => delete process.env['NODE_OPTIONS']);
    const { call } = await inspect(port);
    const warmUp = openLoad(server, CONNECTIONS);
    await warmUp.send(await prepare(WARM_UP_REQUESTS));
    await warmUp.close();
    const load = openLoad(server, CONNECTIONS);
    const requests = await prepare(SAMPLE_REQUESTS);
    await call('Profiler.enable');
    await call('Profiler.setSamplingInterval', { interval: INTERVAL_MICROSECONDS });
    await call('Profiler.start');
    await load.send(requests);
    const { profile } = z.object({ profile: Profile }).parse(await call('Profiler.stop'));
    const microseconds = Object.fromEntries(
      [...sumByOwner(profile)].map(([owner, milliseconds]) => [
        owner,
        (milliseconds / SAMPLE_REQUESTS) * 1000,
      ]),
    );
    figures.push({ target: target.name, scenario: name, microseconds });
    await load.close();
    await server.stop();
  }
  return figures;
}
