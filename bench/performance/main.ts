import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { measureColdStart } from './cold-start';
import { type Figures, MAIN_CONNECTIONS } from './figures';
import { measureGrowth } from './growth';
import type { Server } from './launch';
import { measureMemory } from './memory';
import { measureProfile } from './profile';
import { printFigures, readFigures, writeReport } from './report';
import { type Level, measureRequests } from './requests';
import { measureSizes } from './sizes';
import { measureStatements } from './statements';
import { measureStorage } from './storage';
import { type Surroundings, withSurroundings } from './surroundings';
import {
  buildTargets,
  emptyMiddleware,
  fastify,
  service,
  serviceWithTelemetry,
  type Target,
  tutorial,
} from './targets';

/**
 * `npm run bench`: what the service costs, beside a bare Next.js route, Next.js with an empty middleware, the shape that
 * tutorials teach, and Fastify; over the same database and cache store. Takes over an hour and writes
 * docs/performance.md. `-- --quick` takes under four minutes and prints; `-- --sections requests,coldStart` measures a
 * part again. Needs Linux and a redis-server.
 */
const SECTIONS = [
  'requests',
  'profile',
  'coldStart',
  'statements',
  'storage',
  'sizes',
  'memory',
  'growth',
] as const;
type Section = (typeof SECTIONS)[number];
/** These ask no server that would have to be built. */
const WITHOUT_BUILD: readonly Section[] = ['statements', 'storage'];
const ROWS = [1_000, 1_000_000, 20_000_000];

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    sections: { type: 'string' },
    /** Scenarios by a pattern of their names, and targets by name; what is measured in part is only printed. */
    only: { type: 'string' },
    targets: { type: 'string' },
    connections: { type: 'string', default: '32,1,128' },
    rounds: { type: 'string' },
    'no-build': { type: 'boolean', default: false },
  },
});
const quick = values.quick;
const inPart = quick || values.only !== undefined || values.targets !== undefined || values['no-build'];
const wantedSections = z
  .array(z.enum(SECTIONS))
  .parse(values.sections?.split(',') ?? (quick || values.only ? ['requests'] : SECTIONS));
const rounds = Number(values.rounds ?? (quick ? 3 : 7));

const Package = z.object({ dependencies: z.record(z.string(), z.string()) });

function circumstances(): Pick<Figures, 'machine' | 'node' | 'versions'> {
  const [cpu] = os.cpus();
  const { dependencies } = Package.parse(JSON.parse(readFileSync('package.json', 'utf8')));
  const named = ['next', 'react', '@clerk/nextjs', '@vercel/kv', '@prisma/client', 'pg'];
  return {
    machine: `${os.cpus().length} shared cores (${cpu?.model.trim()}), ${Math.round(os.totalmem() / 2 ** 30)} GB, which also ran database, cache and load`,
    node: process.version,
    versions: Object.fromEntries(named.map((name) => [name, dependencies[name] ?? 'none'])),
  };
}

const isWanted = ({ name }: Target) => !values.targets || values.targets.split(',').includes(name);

/** Each section with servers of its own: one after the other, so that none weighs on the next. */
function measurements(
  surroundings: Surroundings,
  start: (target: Target) => Promise<Server>,
): Record<Section, () => Promise<Partial<Figures>>> {
  // Long enough for a process to get into the state that it has under load.
  const sample = quick ? 100 : 1_200;
  const warmUp = quick ? 2_000 : 13_000;
  // Ratios are told of one number of connections: the others are measured less often.
  const level = (connections: number): Level =>
    connections === MAIN_CONNECTIONS
      ? { connections, rounds, sample, samplesAhead: quick ? 4 : 12 }
      : {
          connections,
          rounds: Math.min(rounds, 3),
          sample: Math.min(400, 150 * connections),
          samplesAhead: 1,
        };
  return {
    requests: async () => ({
      requests: await measureRequests(surroundings, {
        targets: [
          ...[emptyMiddleware, tutorial, fastify, service].filter(isWanted),
          ...(values.targets ? [serviceWithTelemetry].filter(isWanted) : []),
        ],
        levels: (quick ? [MAIN_CONNECTIONS] : values.connections.split(',').map(Number)).map(level),
        warmUp,
        start,
        ...(values.only === undefined ? {} : { wanted: new RegExp(values.only) }),
      }),
    }),
    profile: async () => ({ profile: await measureProfile(surroundings, start) }),
    coldStart: async () => ({ coldStart: await measureColdStart(surroundings, 15) }),
    statements: async () => ({ statements: await measureStatements(surroundings, rounds) }),
    storage: async () => ({ storage: await measureStorage(surroundings, quick ? ROWS.slice(0, 2) : ROWS) }),
    sizes: async () => ({ sizes: await measureSizes(start) }),
    memory: async () => ({ memory: await measureMemory(surroundings, 200_000, start) }),
    growth: async () => ({
      growth: await measureGrowth(surroundings, ROWS, {
        levels: [level(MAIN_CONNECTIONS)],
        warmUp,
        start,
      }),
    }),
  };
}

await withSurroundings(async (surroundings) => {
  const wantsBuild = wantedSections.some((section) => !WITHOUT_BUILD.includes(section));
  if (wantsBuild && !values['no-build']) await buildTargets(surroundings);
  const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
  const major = process.version.replace(/^v(\d+).*/, '$1');
  let figures: Figures = { measured: {}, ...(inPart ? {} : readFigures(major)), ...circumstances() };
  for (const section of wantedSections) {
    const servers: Server[] = [];
    const start = async (target: Target) => {
      const server = await target.start(surroundings);
      servers.push(server);
      return server;
    };
    process.stdout.write(`measuring: ${section}\n`);
    const measured = {
      ...figures.measured,
      [section]: { commit, on: new Date().toISOString().slice(0, 10) },
    };
    try {
      figures = { ...figures, ...(await measurements(surroundings, start)[section]()), measured };
    } finally {
      for (const { stop } of servers) await stop();
    }
    if (!inPart) writeReport(figures);
  }
  printFigures(figures);
});
