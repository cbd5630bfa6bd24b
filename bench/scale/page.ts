import { cost, freePlanEnds, usage } from './compute';
import { ASSUMPTION, FLAT_RATE_CDN, INPUTS, type Input, SIZES, UPSTASH_FIXED } from './inputs';

/** Formats a number: as a whole number if it is at least 100, otherwise with three significant digits. */
const count = (value: number): string =>
  value.toLocaleString(
    'en-US',
    value >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 },
  );

/** Formats an amount in dollars: without cents if the amount is at least 100 dollars. */
const dollars = (value: number): string =>
  `$${value.toLocaleString('en-US', value >= 100 ? { maximumFractionDigits: 0 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

function bytes(value: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.floor(Math.log10(value) / 3);
  return `${count(value / 1_000 ** power)} ${units[power]}`;
}

function duration(seconds: number): string {
  if (seconds < 120) return `${count(Math.round(seconds))} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

type Row = readonly [name: string, ...cells: string[]];

/** Returns a Markdown table. By default, the columns after the first are right-aligned. */
function table(head: Row, rows: readonly Row[], align = '--:'): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [head, ['---', ...head.slice(1).map(() => align)], ...rows].map(line).join('\n');
}

/** Returns a table with one column for each number of daily users. */
const perSize = <Result>(
  compute: (users: number) => Result,
  rows: readonly [string, (of: Result) => string][],
) =>
  table(
    ['Daily users', ...SIZES.map(count)],
    rows.map(([name, cell]) => [name, ...SIZES.map((users) => cell(compute(users)))]),
  );

const usageTable = () =>
  perSize(usage, [
    [
      'requests a month; a second',
      ({ requests, requestsPerSecond }) => `${count(requests)}; ${count(requestsPerSecond)}`,
    ],
    ['function calls a month', ({ invocations }) => count(invocations)],
    [
      'processor hours a month; busy cores',
      ({ cpuHours, coresAtPeak }) => `${count(cpuHours)}; ${count(coresAtPeak)}`,
    ],
    [
      'instances; database connections',
      ({ instancesAtPeak, connectionsAtPeak }) => `${count(instancesAtPeak)}; ${count(connectionsAtPeak)}`,
    ],
    ['GB-hours a month', ({ memory }) => count(memory)],
    [
      'cache commands a month; a second',
      ({ commands, commandsPerSecond }) => `${count(commands)}; ${count(commandsPerSecond)}`,
    ],
    ['cached ids', ({ cachedIds, cachedBytes }) => `${count(cachedIds)}; ${bytes(cachedBytes)}`],
    [
      'statements a second; without a cache',
      ({ statementsPerSecond, statementsWithoutCache }) =>
        `${count(statementsPerSecond)}; ${count(statementsWithoutCache)}`,
    ],
    ['rows', ({ rows }) => count(rows)],
    ['table; both indexes', ({ tableBytes, indexBytes }) => `${bytes(tableBytes)}; ${bytes(indexBytes)}`],
    ['backfill of all rows', ({ backfillSeconds }) => duration(backfillSeconds)],
  ]);

const costTable = () =>
  perSize(
    (users) => ({ ...usage(users), ...cost(users) }),
    [
      ['CDN requests and data', ({ cdn }) => dollars(cdn)],
      ['function calls', ({ invocations }) => dollars(invocations)],
      ['rate limit rule', ({ rateLimit }) => dollars(rateLimit)],
      ['data between CDN and functions', ({ originData }) => dollars(originData)],
      ['processor', ({ cpu }) => dollars(cpu)],
      ['memory', ({ memory }) => dollars(memory)],
      ['**Vercel**: the six rows above, or the price of a seat if higher', ({ vercel }) => dollars(vercel)],
      ['**Upstash**, cheapest plan', ({ store }) => dollars(store)],
      ['**Neon** Launch', ({ database, computeUnits }) => `${dollars(database)} (${computeUnits} CU)`],
      ['**Total**', ({ total }) => dollars(total)],
    ],
  );

function freePlanTable(): string {
  const ends = freePlanEnds();
  const allowance = ({ value, unit }: Input) => `${count(value)} ${unit}`;
  return table(
    ['Free plan', 'Includes', 'Ends at daily users', 'Then'],
    [
      [
        'Upstash, commands',
        allowance(INPUTS.upstashFreeCommands),
        count(ends.commands),
        'the guard uses the database',
      ],
      [
        'Vercel Hobby, function calls',
        allowance(INPUTS.hobbyInvocations),
        count(ends.invocations),
        'Vercel pauses the deployment',
      ],
      [
        'Vercel Hobby, memory',
        allowance(INPUTS.hobbyMemory),
        count(ends.memory),
        'Vercel pauses the deployment',
      ],
      [
        'Vercel Hobby, CDN requests',
        allowance(INPUTS.hobbyCdnRequests),
        count(ends.cdnRequests),
        'Vercel pauses the deployment',
      ],
      [
        'Vercel Hobby, processor',
        allowance(INPUTS.hobbyCpu),
        count(ends.cpu),
        'Vercel pauses the deployment',
      ],
      [
        'Neon, compute',
        allowance(INPUTS.neonFreeHours),
        `any: ${count(ends.databaseHours)} hours of ${usage(1).computeUnits} CU`,
        'Neon suspends the database',
      ],
    ],
    '---',
  );
}

/** Returns a Markdown list. The first item lists the assumptions with their values. Each other item is a source with its date. */
function sourceList(): string {
  const inputs = Object.values<Input>(INPUTS);
  const assumptions = inputs
    .filter(({ source }) => source === ASSUMPTION.source)
    .map(({ name, value, unit }) => `${name}: ${value.toLocaleString('en-US')} ${unit}`);
  const sources = [...inputs, ...FLAT_RATE_CDN, ...UPSTASH_FIXED]
    .filter(({ source }) => source !== ASSUMPTION.source)
    .map(({ source, date }) => `- ${source}, ${date}`);
  return [`- Assumptions: ${assumptions.join('; ')}`, ...new Set(sources)].join('\n');
}

const SECTIONS = {
  usage: usageTable,
  cost: costTable,
  'free plans': freePlanTable,
  sources: sourceList,
};

/** Returns the text of docs/scale.md with newly computed sections. Throws if a section is missing. */
export function withComputedSections(page: string): string {
  return Object.entries(SECTIONS).reduce((text, [name, compute]) => {
    const section = new RegExp(`(<!-- npm run scale: ${name} -->\n)[^]*?(<!-- end -->)`);
    if (!section.test(text)) throw new Error(`docs/scale.md does not contain the section "${name}".`);
    return text.replace(section, (_all, start: string, end: string) => `${start}${compute()}\n${end}`);
  }, page);
}
