import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Figures, MAIN_CONNECTIONS, type Requests, type Spread } from './figures';
import { plot, SCHEMES } from './plot';
import { targets } from './targets';

const FOLDER = 'docs/performance';
const PAGE = 'docs/performance.md';

const titles = new Map(targets.map(({ name, title }) => [name, title]));
const titleOf = (target: string) => titles.get(target) ?? target;

const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map((_, index) => (index === 0 ? '---' : '--:')), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');

const times = ({ median, least, most }: Spread) =>
  `${median.toFixed(2)} (${least.toFixed(2)}–${most.toFixed(2)})`;

const formatConnections = (count: number) => `ms, ${count === 1 ? '1 connection' : `${count} connections`}`;

function requestSections({ bareMicroseconds, cpu, latency }: Requests, major: string): string[] {
  const names = [...new Set(cpu.flatMap(({ ratios }) => Object.keys(ratios)))];
  const connectionCounts = [...new Set(latency.map(({ connections }) => connections))];
  return [
    '### CPU time per request',
    `Median with ${MAIN_CONNECTIONS} connections (minimum–maximum), as a multiple of a bare Next.js route, which only returns JSON and took ${bareMicroseconds.least} to ${bareMicroseconds.most} µs. The last columns are the CPU time of the service and its latency (median, 99th percentile).`,
    `<picture><source media="(prefers-color-scheme: dark)" srcset="performance/node-${major}-dark.svg"><img alt="Bar chart of the CPU time of each kind of request" src="performance/node-${major}-light.svg"></picture>`,
    table(
      ['', ...names.map(titleOf), 'µs', ...connectionCounts.map(formatConnections)],
      cpu.map(({ scenario, ratios, serviceMicroseconds }) => [
        scenario,
        ...names.map((name) => (ratios[name] ? times(ratios[name]) : '')),
        serviceMicroseconds === undefined ? '' : String(Math.round(serviceMicroseconds)),
        ...connectionCounts.map((connections) => {
          const found = latency.find(
            (each) => each.scenario === scenario && each.connections === connections,
          );
          return found ? `${found.p50Milliseconds.toFixed(1)}, ${found.p99Milliseconds.toFixed(1)}` : '';
        }),
      ]),
    ),
  ];
}

type Profiled = NonNullable<Figures['profile']>;

function profileSection(profile: Profiled): string[] {
  const owners = [...new Set(profile.flatMap(({ microseconds }) => Object.keys(microseconds)))].toSorted();
  const total = ({ microseconds }: Profiled[number]) =>
    Object.values(microseconds).reduce((sum, each) => sum + each, 0);
  return [
    '### CPU time by owner of the code',
    'Microseconds of the main thread per request, with 32 connections. The sampling profiler adds overhead.',
    table(
      ['', ...profile.map(({ target, scenario }) => `${titleOf(target)}: ${scenario}`)],
      [
        ...owners.map((owner) => [
          owner,
          ...profile.map(({ microseconds }) => String(Math.round(microseconds[owner] ?? 0))),
        ]),
        ['total', ...profile.map((each) => String(Math.round(total(each))))],
      ],
    ),
  ];
}

function storageSection({ tables, cache }: NonNullable<Figures['storage']>): string[] {
  type Table = (typeof tables)[number];
  const row = (name: string, cell: (of: Table) => string) => [name, ...tables.map(cell)];
  const cost = ({ serverMicroseconds, milliseconds }: Table['lookUp']) =>
    `${serverMicroseconds.toFixed(0)} µs; ${milliseconds.toFixed(2)} ms`;
  return [
    '### Storage per user and cost per statement',
    'The column heading is the number of rows in the users table. The ids are random and have 32 characters. The last two rows have two values: the CPU time of the database process, and the median latency over one connection.',
    table(
      ['', ...tables.map(({ users }) => users.toLocaleString('en'))],
      [
        row('bytes per user: row', ({ bytes, users }) => (bytes.table / users).toFixed(0)),
        row('bytes per user: index on the internal id', ({ bytes, users }) =>
          (bytes.idIndex / users).toFixed(0),
        ),
        row('bytes per user: index on the identity-provider id', ({ bytes, users }) =>
          (bytes.linkIndex / users).toFixed(0),
        ),
        row('pages that a lookup reads', ({ lookUpPages }) => String(lookUpPages)),
        row('look up a user', ({ lookUp }) => cost(lookUp)),
        row('insert a user', ({ insert }) => cost(insert)),
      ],
    ),
    `A cached id takes ${cache.bytesEach.toFixed(0)} bytes in Redis. A cache hit sends ${cache.hit.sent} bytes to the REST interface and receives ${cache.hit.received}. A write sends ${cache.written.sent} bytes and receives ${cache.written.received}. TLS is not included, and a hosted store sends longer response headers.`,
  ];
}

/** Sections that have one name in the option `--sections` (the key) and another name on the page (the value). */
const NAMES: Readonly<Record<string, string>> = {
  profile: 'CPU time by owner',
  growth: 'more users',
  statements: 'Prisma',
};

function sections(figures: Figures, major: string): string[] {
  const { requests, profile, coldStart, growth, memory, statements, storage, sizes } = figures;
  const tableSizes = [...new Set(growth?.map(({ users }) => users))];
  return [
    `## Node.js ${major}`,
    `Node.js ${figures.node}. Measured commits: ${Object.entries(figures.measured)
      .map(([section, { commit, on }]) => `*${NAMES[section] ?? section}* ${commit}, ${on}`)
      .join('; ')}.`,
    ...(requests ? requestSections(requests, major) : []),
    ...(profile ? profileSection(profile) : []),
    ...(coldStart
      ? [
          '### Cold start',
          'CPU time of a new process until it has responded to its first request, as a multiple of the bare Next.js application.',
          table(
            ['', 'first request', '× bare', 'ms'],
            coldStart.map(({ target, request, ratio, cpuMilliseconds }) => [
              titleOf(target),
              request,
              times(ratio),
              String(Math.round(cpuMilliseconds)),
            ]),
          ),
        ]
      : []),
    ...(growth
      ? [
          '### With more users',
          'CPU time of the service as a multiple of a bare Next.js route, by number of users.',
          table(
            ['', ...tableSizes.map((users) => users.toLocaleString('en'))],
            [...new Set(growth.map(({ scenario }) => scenario))].map((scenario) => [
              scenario,
              ...tableSizes.map((users) => {
                const found = growth.find((each) => each.scenario === scenario && each.users === users);
                return found ? times(found.ratio) : '';
              }),
            ]),
          ),
        ]
      : []),
    ...(memory
      ? [
          '### Memory',
          `Resident memory after one request: ${memory.targets
            .map(({ target, atRestMegabytes }) => `${titleOf(target)} ${Math.round(atRestMegabytes)} MB`)
            .join(', ')}. After ${memory.users.toLocaleString('en')} requests of new users: ${memory.targets
            .flatMap(({ target, afterMegabytes }) =>
              afterMegabytes === undefined ? [] : [`${titleOf(target)} ${Math.round(afterMegabytes)} MB`],
            )
            .join(', ')}.`,
        ]
      : []),
    ...(statements
      ? [
          '### Overhead of Prisma',
          'Microseconds of client CPU time per statement.',
          table(
            ['', 'pg alone', 'Prisma with pg', 'ratio'],
            statements.map(({ statement, poolMicroseconds, prismaMicroseconds }) => [
              statement,
              String(Math.round(poolMicroseconds)),
              String(Math.round(prismaMicroseconds)),
              (prismaMicroseconds / poolMicroseconds).toFixed(1),
            ]),
          ),
        ]
      : []),
    ...(storage ? storageSection(storage) : []),
    ...(sizes
      ? [
          '### Sizes',
          `\`.next/server\`: ${sizes.serverMegabytes.toFixed(1)} MB. Serverless functions with dependencies: ${Object.entries(
            sizes.functions,
          )
            .map(([name, size]) => `${name} ${size.toFixed(1)} MB`)
            .join(', ')}. Compressed scripts, without those of the provider: ${sizes.pages
            .map((page) => `${page.path} ${page.kilobytes.toFixed(0)} kB`)
            .join(', ')}.`,
        ]
      : []),
  ];
}

/** Returns the path of the stored figures for a Node.js release line. */
const fileOf = (major: string) => path.join(FOLDER, `node-${major}.json`);

/** Returns the stored figures for a Node.js release line, such as 24. */
export function readFigures(major: string): Partial<Figures> {
  const file = fileOf(major);
  return existsSync(file) ? Figures.parse(JSON.parse(readFileSync(file, 'utf8'))) : {};
}

const DECIMALS = 6;

/** Returns the figures as JSON with one line per measurement. */
function formatFigures(figures: Figures): string {
  const roundNumber = (_key: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toFixed(DECIMALS)) : value;
  const format = (value: unknown, indent: string): string => {
    if (Array.isArray(value)) {
      return `[\n${value.map((each) => `${indent} ${JSON.stringify(each, roundNumber)}`).join(',\n')}\n${indent}]`;
    }
    const isNested =
      typeof value === 'object' && value !== null && Object.values(value).some((each) => Array.isArray(each));
    if (!isNested) return JSON.stringify(value, roundNumber);
    const lines = Object.entries(value).map(
      ([name, each]) => `${indent} ${JSON.stringify(name)}: ${format(each, `${indent} `)}`,
    );
    return `{\n${lines.join(',\n')}\n${indent}}`;
  };
  return `${format(figures, '')}\n`;
}

/** Replaces the text between the comments `npm run bench` and `end` in the README. */
function updateReadme({ cpu }: Requests, { node, measured }: Figures): void {
  const figure = (name: string) =>
    cpu.find(({ scenario }) => scenario === name)?.ratios['service']?.median.toFixed(1);
  const text = `A guarded request with a cache hit takes ${figure('hit, bearer, known credential')} times the CPU time of a bare Next.js route in a separate application. A request without a credential (401) takes ${figure('401, no credential')} times as much as that route, and a registration of an existing user ${figure('register, existing')} times as much. Measured at commit ${measured['requests']?.commit} with Node.js ${node} and ${MAIN_CONNECTIONS} connections.`;
  const readme = readFileSync('README.md', 'utf8');
  const marks = /(<!-- npm run bench -->\n)[^<]*(<!-- end -->)/;
  if (!marks.test(readme))
    throw new Error(
      'README.md must contain the lines "<!-- npm run bench -->" and "<!-- end -->". Add them.',
    );
  writeFileSync('README.md', readme.replace(marks, `$1${text}\n$2`));
}

const majorOf = (node: string) => node.replace(/^v?(\d+).*/, '$1');

export function storeFigures(figures: Figures): void {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(fileOf(majorOf(figures.node)), formatFigures(figures));
}

/** Writes docs/performance.md, its plots and the text in the README from the stored figures. */
export function writeReport(): void {
  const all = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => Figures.parse(JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'))));
  for (const { node, requests } of all) {
    if (!requests) continue;
    for (const [name, scheme] of Object.entries(SCHEMES)) {
      writeFileSync(
        path.join(FOLDER, `node-${majorOf(node)}-${name}.svg`),
        plot(requests.cpu, titles, scheme),
      );
    }
  }
  const page = [
    '# Performance',
    'Generated by `npm run bench`. [Notes](performance/notes.md) describe the methods, the conclusions and the baselines, such as the *tutorial design*. *Hit*: the internal id is in the cache. *Known*: the server process has already verified the credential.',
    ...new Set(all.map(({ machine }) => `${machine}.`)),
    ...all.flatMap((each) => sections(each, majorOf(each.node))),
  ];
  writeFileSync(PAGE, `${page.join('\n\n')}\n`);
  // The README contains the figures of the newest Node.js release line.
  const newest = all.at(-1);
  if (newest?.requests) updateReadme(newest.requests, newest);
}

/** Prints figures in the format of docs/performance.md. */
export function printFigures(figures: Figures): void {
  process.stdout.write(
    `${[`${figures.machine}.`, ...sections(figures, majorOf(figures.node))].join('\n\n')}\n`,
  );
}
