import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Figures, MAIN_CONNECTIONS, type RequestFigures, type Spread } from './figures';
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

/** One row a scenario, one column a target. */
function byTarget(figures: readonly RequestFigures[], cell: (figures: RequestFigures) => string): string {
  const names = [...new Set(figures.map(({ target }) => target))].filter((target) => target !== 'bare');
  const scenarios = [...new Set(figures.map(({ scenario }) => scenario))];
  return table(
    ['', ...names.map(titleOf)],
    scenarios.map((scenario) => [
      scenario,
      ...names.map((target) => {
        const found = figures.find((each) => each.scenario === scenario && each.target === target);
        return found ? cell(found) : '';
      }),
    ]),
  );
}

const connectionsOf = (count: number) => (count === 1 ? '1 connection' : `${count} connections`);

function requestSections(requests: readonly RequestFigures[], major: string): string[] {
  const at = (connections: number) => requests.filter((each) => each.connections === connections);
  const references = at(MAIN_CONNECTIONS).filter(({ target }) => target === 'bare');
  const microseconds = references.map(({ cpuMicroseconds }) => Math.round(cpuMicroseconds));
  return [
    '### Processor time of a request',
    `As a multiple of a bare Next.js route of another application, which took ${Math.min(...microseconds)} to ${Math.max(...microseconds)} µs in this run. ${MAIN_CONNECTIONS} connections; the median of the rounds, and in parentheses the least and the most.`,
    `<picture><source media="(prefers-color-scheme: dark)" srcset="performance/node-${major}-dark.svg"><img alt="Processor time of each kind of request, as bars" src="performance/node-${major}-light.svg"></picture>`,
    byTarget(at(MAIN_CONNECTIONS), ({ ratio }) => times(ratio)),
    ...[...new Set(requests.map(({ connections }) => connections))].flatMap((connections) => [
      `### ${connectionsOf(connections)}: requests a second; median and 99th percentile in milliseconds`,
      byTarget(
        at(connections),
        ({ perSecond, p50Milliseconds, p99Milliseconds }) =>
          `${Math.round(perSecond)}; ${p50Milliseconds.toFixed(1)}, ${p99Milliseconds.toFixed(1)}`,
      ),
      ...(connections === MAIN_CONNECTIONS
        ? []
        : [
            'Processor time, as a multiple of the bare route:',
            byTarget(at(connections), ({ ratio }) => times(ratio)),
          ]),
    ]),
  ];
}

type Profiled = NonNullable<Figures['profile']>;

function profileTable(profile: Profiled): string {
  const [reference] = profile;
  const owners = [...new Set(profile.flatMap(({ microseconds }) => Object.keys(microseconds)))].toSorted();
  const total = ({ microseconds }: Profiled[number]) =>
    Object.values(microseconds).reduce((sum, each) => sum + each, 0);
  return table(
    ['', ...profile.map(({ target, scenario }) => `${titleOf(target)}: ${scenario}`)],
    [
      ...owners.map((owner) => [
        owner,
        ...profile.map((each) => {
          const own = each.microseconds[owner] ?? 0;
          return `${Math.round(own)}; ${Math.round((own / total(each)) * 100)} %`;
        }),
      ]),
      [
        'together; × bare',
        ...profile.map(
          (each) => `${Math.round(total(each))}; ${(total(each) / total(reference ?? each)).toFixed(2)}`,
        ),
      ],
      [
        'median of an answer, before the profiler was on',
        ...profile.map(({ p50Milliseconds }) => `${p50Milliseconds.toFixed(1)} ms`),
      ],
    ],
  );
}

function profileSection(profile: Profiled): string[] {
  return [
    '### Whose code runs',
    'Microseconds of the main thread a request, by a sampling profiler, which itself takes time; and the share of the whole. A function of a bundle counts for whose source it was made of; a neighbour’s own code is its own “ours”.',
    ...[...new Set(profile.map(({ connections }) => connections))].flatMap((count) => [
      `At ${connectionsOf(count)}:`,
      profileTable(profile.filter(({ connections }) => connections === count)),
    ]),
  ];
}

function storageSection({ tables, cache }: NonNullable<Figures['storage']>): string[] {
  type Table = (typeof tables)[number];
  const row = (name: string, cell: (of: Table) => string) => [name, ...tables.map(cell)];
  const cost = ({ serverMicroseconds, milliseconds }: Table['lookUp']) =>
    `${serverMicroseconds.toFixed(0)} µs; ${milliseconds.toFixed(2)} ms`;
  return [
    '### What a user takes, and what a statement takes',
    'By the number of users in the table, whose ids have 32 characters in no order. Of a statement: processor time of the database’s own process, and the median of how long it took, one after the other over one connection of the driver.',
    table(
      ['', ...tables.map(({ users }) => users.toLocaleString('en'))],
      [
        row('bytes a user: the row', ({ bytes, users }) => (bytes.table / users).toFixed(0)),
        row('bytes a user: the index of ids', ({ bytes, users }) => (bytes.idIndex / users).toFixed(0)),
        row('bytes a user: the index of links', ({ bytes, users }) => (bytes.linkIndex / users).toFixed(0)),
        row('pages that a look-up reads', ({ lookUpPages }) => String(lookUpPages)),
        row('look up a user', ({ lookUp }) => cost(lookUp)),
        row('insert a user', ({ insert }) => cost(insert)),
      ],
    ),
    `A cached id takes ${cache.bytesEach.toFixed(0)} bytes of the store, a Redis. A hit sends ${cache.hit.sent} bytes to its REST interface and receives ${cache.hit.received}, a write ${cache.written.sent} and ${cache.written.received}, without TLS; the store here answers with a short head.`,
  ];
}

function sections(figures: Figures, major: string): string[] {
  const { requests, profile, coldStart, growth, memory, statements, storage, sizes } = figures;
  return [
    `## Node.js ${major}`,
    `${figures.machine}; Node.js ${figures.node}; ${Object.entries(figures.versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ')}. Measured: ${Object.entries(figures.measured)
      .map(([section, { commit, on }]) => `${section} at ${commit} on ${on}`)
      .join('; ')}.`,
    ...(requests ? requestSections(requests, major) : []),
    ...(profile ? profileSection(profile) : []),
    ...(coldStart
      ? [
          '### Cold start',
          'Processor time of a fresh process until it has answered its first request, as a multiple of the bare application’s.',
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
          'Processor time of the service, as a multiple of the bare route, by the number of users in the table; and the median in milliseconds at 32 connections.',
          table(
            ['', ...growth.map(({ users }) => users.toLocaleString('en'))],
            [...new Set(growth.flatMap(({ rows }) => rows.map(({ scenario }) => scenario)))].map(
              (scenario) => [
                scenario,
                ...growth.map(({ rows }) => {
                  const found = rows.find((each) => each.scenario === scenario && each.target !== 'bare');
                  return found ? `${times(found.ratio)}; ${found.p50Milliseconds.toFixed(1)} ms` : '';
                }),
              ],
            ),
          ),
        ]
      : []),
    ...(memory
      ? [
          '### Memory',
          `Resident megabytes of the process after its first request, and after ${memory.users.toLocaleString('en')} first sights, each of another user.`,
          table(
            ['', 'at rest', 'afterwards'],
            memory.targets.map(({ target, atRestMegabytes, afterMegabytes }) => [
              titleOf(target),
              String(Math.round(atRestMegabytes)),
              afterMegabytes === undefined ? '' : String(Math.round(afterMegabytes)),
            ]),
          ),
        ]
      : []),
    ...(statements
      ? [
          '### What Prisma costs over the pool',
          'Processor time of the client for one statement, in microseconds.',
          table(
            ['', 'pg', 'Prisma over pg', 'ratio'],
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
          `The server’s files take ${sizes.serverMegabytes.toFixed(1)} MB. A function with all that it may load:`,
          table(
            ['function', 'MB'],
            Object.entries(sizes.functions).map(([name, size]) => [name, size.toFixed(1)]),
          ),
          'The scripts of a page, compressed; those of the identity provider come from its own host.',
          table(
            ['page', 'own scripts', 'kB', 'of the provider'],
            sizes.pages.map((page) => [
              page.path,
              String(page.scripts),
              page.kilobytes.toFixed(0),
              String(page.ofTheProvider),
            ]),
          ),
        ]
      : []),
  ];
}

const fileOf = (major: string) => path.join(FOLDER, `node-${major}.json`);

/** The figures that were measured before on this line of Node.js; sections that were not measured again stay. */
export function readFigures(major: string): Partial<Figures> {
  const file = fileOf(major);
  return existsSync(file) ? Figures.parse(JSON.parse(readFileSync(file, 'utf8'))) : {};
}

/** The sentence of the README, between its marks. */
function quoteInReadme(requests: readonly RequestFigures[], node: string): void {
  const figure = (scenario: string) =>
    requests
      .find(
        (each) =>
          each.scenario === scenario && each.target === 'service' && each.connections === MAIN_CONNECTIONS,
      )
      ?.ratio.median.toFixed(1);
  const sentence = `Processor time, as a multiple of a bare Next.js route of another application in the same run (Node.js ${node}, ${MAIN_CONNECTIONS} connections): a guarded request from the cache ${figure('hit, bearer, known credential')}, one without a credential (401) ${figure('401, no credential')}, a registration of a known user ${figure('register, existing')}.`;
  const readme = readFileSync('README.md', 'utf8');
  const marks = /(<!-- npm run bench -->\n)[^<]*(<!-- end -->)/;
  if (!marks.test(readme)) throw new Error('README.md has lost the marks between which the figures stand.');
  writeFileSync('README.md', readme.replace(marks, `$1${sentence}\n$2`));
}

/** Writes the figures, and from all that there are the page, its plots and the README's sentence. */
export function writeReport(figures: Figures): void {
  const majorOf = (node: string) => node.replace(/^v?(\d+).*/, '$1');
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(fileOf(majorOf(figures.node)), `${JSON.stringify(figures, undefined, 1)}\n`);
  const all = readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => Figures.parse(JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'))));
  for (const { node, requests = [] } of all) {
    const main = requests.filter(({ connections }) => connections === MAIN_CONNECTIONS);
    for (const [name, scheme] of Object.entries(SCHEMES)) {
      writeFileSync(path.join(FOLDER, `node-${majorOf(node)}-${name}.svg`), plot(main, titles, scheme));
    }
  }
  const page = [
    '# Performance',
    'Written by `npm run bench`; do not edit. [How it is measured, and what was tried](performance/notes.md).',
    ...all.flatMap((each) => sections(each, majorOf(each.node))),
  ];
  writeFileSync(PAGE, `${page.join('\n\n')}\n`);
  // Of the Node.js that the README recommends.
  const newest = all.at(-1);
  if (newest?.requests) quoteInReadme(newest.requests, newest.node);
}

/** The same tables for a terminal. */
export function printFigures(figures: Figures): void {
  process.stdout.write(`${sections(figures, figures.node).join('\n\n')}\n`);
}
