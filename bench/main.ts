import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { startDependencies, type TestDependencies } from '../tests/harness/service';
import startDatabase from '../tests/vitest/start-database';
import { type BenchRequest, cacheHit, hello, SCENARIOS, usersFrom } from './requests';
import {
  type Application,
  baseline,
  build,
  CONNECTIONS,
  copyPackages,
  cpuPerRequest,
  residentMegabytes,
  type Server,
  start,
  tutorial,
} from './servers';

/**
 * `npm run bench`: measures the CPU time of this service beside that of the baselines, and writes the table in README.md.
 * Requires Linux, because the CPU time and the memory of a process come from /proc.
 *
 * `-- --quick` sends fewer requests and only prints the table. `-- --against <folder>` also measures another checkout of this
 * repository with installed packages, and only prints the table.
 */
const { quick, against } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, against: { type: 'string' } },
}).values;
const { rounds, sample, warmUp } = quick
  ? { rounds: 3, sample: 200, warmUp: 500 }
  : { rounds: 9, sample: 1_000, warmUp: 5_000 };
/** Number of users of each application. */
const USERS = 100;

const bare = baseline('bare');
const emptyMiddleware = baseline('empty-middleware');

/** Returns the tutorial's application and the service, each with variables for the dependencies. */
function applicationsFor(dependencies: TestDependencies): Application[] {
  const Package = z.object({ scripts: z.object({ start: z.string() }) });
  const service = (title: string, folder: string): Application => ({
    title,
    folder: path.resolve(folder),
    build: 'npm run build',
    start: Package.parse(JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))).scripts.start,
    environment: dependencies.environment,
  });
  return [
    tutorial(dependencies),
    service('this service', '.'),
    ...(against === undefined ? [] : [service(against, against)]),
  ];
}

const median = (values: readonly number[]) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Formats the median and the range of the ratios between two results of the same round. */
function formatRatios(results: readonly number[], references: readonly number[]): string {
  const ratios = results.map((result, round) => result / (references[round] ?? Number.NaN));
  return `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
}

interface Measured {
  readonly server: Server;
  readonly makeRequest: () => BenchRequest;
}

/**
 * Sends requests to all servers in turn. Returns the ratios to a request of the same method to the bare route, and the CPU time
 * of the bare route in ms.
 */
async function compareRequests(reference: Server, measured: readonly Measured[]) {
  const method = measured[0]?.makeRequest().method;
  const all: readonly Measured[] = [{ server: reference, makeRequest: () => hello(method) }, ...measured];
  const times = all.map((): number[] => []);
  for (const { server, makeRequest } of all) await cpuPerRequest(server, makeRequest, warmUp);
  for (let round = 0; round < rounds; round += 1)
    for (const [index, { server, makeRequest }] of all.entries())
      times[index]?.push(await cpuPerRequest(server, makeRequest, sample));
  const [references = [], ...results] = times;
  return { ratios: results.map((each) => formatRatios(each, references)), milliseconds: median(references) };
}

const stops: (() => Promise<void>)[] = [];

/** Measures all applications and returns the text for README.md. */
async function measure(): Promise<string> {
  const stopDatabase = await startDatabase();
  if (stopDatabase) stops.push(stopDatabase);
  const dependencies = await startDependencies({ keys: 'live' });
  stops.push(dependencies.stop);
  const { database, idp, kv } = dependencies;
  const applications = applicationsFor(dependencies);
  copyPackages();
  for (const application of [bare, emptyMiddleware, ...applications]) {
    console.log(`building: ${application.title}`);
    await build(application);
  }
  const startServer = async (application: Application, request: BenchRequest) => {
    const server = await start(application, request);
    stops.push(server.stop);
    return server;
  };

  const reference = await startServer(bare, hello());
  const middleware = await startServer(emptyMiddleware, hello());
  const empty = await compareRequests(reference, [{ server: middleware, makeRequest: () => hello() }]);

  const compared = [];
  for (const [index, application] of applications.entries()) {
    // Each application has its own users, because the applications share the database and the cache.
    const ids = Array.from({ length: USERS }, (_, user) => `user_${index}_${user}`);
    await database.pool.query(
      'INSERT INTO users (id, identity_provider_user_id) SELECT gen_random_uuid(), unnest($1::text[])',
      [ids],
    );
    const users = usersFrom(ids, idp);
    const server = await startServer(application, cacheHit(users));
    compared.push({ users, server, memory: residentMegabytes(server) });
  }
  const rows = [
    ['', ...applications.map(({ title }) => title)],
    ['---', ...applications.map(() => '--:')],
  ];
  for (const [title, scenario] of Object.entries(SCENARIOS)) {
    console.log(`measuring: ${title}`);
    const { ratios } = await compareRequests(
      reference,
      compared.map(({ server, users }) => ({ server, makeRequest: () => scenario(users) })),
    );
    rows.push([title, ...ratios]);
    // The test dependencies record commands and statements, which would fill the memory.
    kv.takeCommands();
    database.takeStatements();
  }
  const used = compared.map(({ server, memory }) =>
    [memory, residentMegabytes(server)].map((megabytes) => Math.round(megabytes)).join(' / '),
  );
  rows.push(['MB after the start / after the requests above', ...used]);

  const commit = execFileSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' }).trim();
  return `CPU time of the server process with Node.js ${process.version}, as a multiple of the same method of a bare Next.js route in a separate application (GET: ${empty.milliseconds.toFixed(2)} ms per request). Behind an empty middleware, that route takes ${empty.ratios.join()}. The [tutorial](bench/baselines/tutorial) uses the SDK's middleware and \`auth()\`, a cached id and a Prisma upsert. \`npm run bench\`: median (minimum–maximum) of ${rounds} rounds with ${CONNECTIONS} connections, at commit ${commit}.

${rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}
`;
}

try {
  const text = await measure();
  console.log(`\n${text}`);
  if (!quick && against === undefined) {
    const block = /(?<=<!-- npm run bench -->\n).*(?=<!-- end -->)/s;
    writeFileSync(
      'README.md',
      readFileSync('README.md', 'utf8').replace(block, () => text),
    );
  }
} finally {
  for (const stop of stops.reverse()) await stop();
}
