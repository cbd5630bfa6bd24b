import { execFileSync } from 'node:child_process';
import os from 'node:os';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { measureColdStart } from './cold-start';
import { type Figures, MAIN_CONNECTIONS, summarizeRequests } from './figures';
import { type Fixtures, withFixtures } from './fixtures';
import { measureGrowth } from './growth';
import type { Server } from './launch';
import { measureMemory } from './memory';
import { measureProfile } from './profile';
import { printFigures, readFigures, storeFigures, writeReport } from './report';
import { type Level, measureRequests } from './requests';
import { measureSizes } from './sizes';
import { measureStatements } from './statements';
import { measureStorage } from './storage';
import {
  buildTargets,
  emptyMiddleware,
  fastify,
  item,
  service,
  serviceWithTelemetry,
  type Target,
  tutorial,
} from './targets';

/**
 * `npm run bench`: compares the service with the servers in baselines/. They are a bare Next.js route (a constant JSON response
 * without middleware), the same route behind an empty middleware, a design of common tutorials (Clerk's `auth()`, a cached id
 * and a Prisma upsert), an application with the registry items (code in registry/ that existing applications install), and
 * Fastify. The first two servers use no database and no cache. The service and the other servers share one database and one
 * cache.
 *
 * The command takes over an hour and writes docs/performance.md. The Git work tree must be clean, because that page names the
 * measured commit. `-- --quick` measures only the section `requests`, takes less than four minutes, and prints the results
 * without storing them. `-- --sections requests,coldStart` measures these two sections again and keeps the stored figures of the
 * other sections. `-- --report` writes the page from the stored figures. Requires Linux and redis-server.
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
/** Sections that do not need a build. */
const WITHOUT_BUILD: readonly Section[] = ['statements', 'storage'];
/** Numbers of rows of the table `users` in the sections `storage` and `growth`. */
const ROWS = [1_000, 1_000_000, 20_000_000];

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    sections: { type: 'string' },
    /** Pattern for the names of the scenarios (kinds of requests) to measure. */
    only: { type: 'string' },
    targets: { type: 'string' },
    connections: { type: 'string', default: '32,1' },
    rounds: { type: 'string' },
    'no-build': { type: 'boolean', default: false },
    /** Writes the page from the stored figures, without a measurement. */
    report: { type: 'boolean', default: false },
  },
});
const quick = values.quick;
/** True if the results are printed but not stored. */
const isPartial = quick || values.only !== undefined || values.targets !== undefined || values['no-build'];
const wantedSections = z
  .array(z.enum(SECTIONS))
  .parse(values.sections?.split(',') ?? (quick || values.only ? ['requests'] : SECTIONS));
const rounds = Number(values.rounds ?? (quick ? 3 : 7));

function describeEnvironment(): Pick<Figures, 'machine' | 'node'> {
  const [cpu] = os.cpus();
  return {
    machine: `${os.cpus().length} shared cores (${cpu?.model.trim()}), ${Math.round(os.totalmem() / 2 ** 30)} GB. The database, the cache and the load generator ran on the same machine`,
    node: process.version,
  };
}

const isWanted = ({ name }: Target) => !values.targets || values.targets.split(',').includes(name);

/** Returns the measurement of each section as a function. The caller stops the servers that `start` starts. */
function measurements(
  fixtures: Fixtures,
  start: (target: Target) => Promise<Server>,
): Record<Section, () => Promise<Partial<Figures>>> {
  // Requests per round, target and scenario.
  const sample = quick ? 100 : 1_200;
  // Enough requests for V8 to optimize the code before the first measurement.
  const warmUp = quick ? 2_000 : 13_000;
  // docs/performance.md shows CPU ratios only for MAIN_CONNECTIONS. For other numbers of connections, the page shows only
  // latencies, and these need fewer rounds.
  const level = (connections: number): Level =>
    connections === MAIN_CONNECTIONS
      ? { connections, rounds, sample, warmUpSamples: quick ? 4 : 12 }
      : {
          connections,
          rounds: Math.min(rounds, 3),
          sample: Math.min(400, 150 * connections),
          warmUpSamples: 1,
        };
  return {
    requests: async () => ({
      requests: summarizeRequests(
        await measureRequests(fixtures, {
          targets: [
            ...[emptyMiddleware, tutorial, item, fastify, service].filter(isWanted),
            ...(values.targets ? [serviceWithTelemetry].filter(isWanted) : []),
          ],
          levels: (quick ? [MAIN_CONNECTIONS] : values.connections.split(',').map(Number)).map(level),
          warmUp,
          start,
          ...(values.only === undefined ? {} : { wanted: new RegExp(values.only) }),
        }),
      ),
    }),
    profile: async () => ({ profile: await measureProfile(fixtures, start) }),
    coldStart: async () => ({ coldStart: await measureColdStart(fixtures, 15) }),
    statements: async () => ({ statements: await measureStatements(fixtures, rounds) }),
    storage: async () => ({ storage: await measureStorage(fixtures, quick ? ROWS.slice(0, 2) : ROWS) }),
    sizes: async () => ({ sizes: await measureSizes(start) }),
    memory: async () => ({ memory: await measureMemory(fixtures, 200_000, start) }),
    growth: async () => ({
      growth: await measureGrowth(fixtures, ROWS, {
        levels: [level(MAIN_CONNECTIONS)],
        warmUp,
        start,
      }),
    }),
  };
}

async function measure(): Promise<void> {
  const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
  if (!isPartial && commit.endsWith('-dirty')) {
    throw new Error('Commit your changes first, because docs/performance.md names the measured commit.');
  }

  await withFixtures(async (fixtures) => {
    const wantsBuild = wantedSections.some((section) => !WITHOUT_BUILD.includes(section));
    if (wantsBuild && !values['no-build']) await buildTargets(fixtures);
    const major = process.version.replace(/^v(\d+).*/, '$1');
    let figures: Figures = {
      measured: {},
      ...(isPartial ? {} : readFigures(major)),
      ...describeEnvironment(),
    };
    for (const section of wantedSections) {
      const servers: Server[] = [];
      const start = async (target: Target) => {
        const server = await target.start(fixtures);
        servers.push(server);
        return server;
      };
      process.stdout.write(`measuring: ${section}\n`);
      const measured = {
        ...figures.measured,
        [section]: { commit, on: new Date().toISOString().slice(0, 10) },
      };
      try {
        figures = { ...figures, ...(await measurements(fixtures, start)[section]()), measured };
      } finally {
        for (const { stop } of servers) await stop();
      }
      if (!isPartial) {
        storeFigures(figures);
        writeReport();
      }
    }
    printFigures(figures);
  });
}

if (values.report) writeReport();
else await measure();
