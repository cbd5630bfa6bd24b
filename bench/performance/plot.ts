import type { Requests } from './figures';

/** Colors of one color scheme. `bars` has one color for each target (a measured server). */
interface Scheme {
  readonly ink: string;
  readonly soft: string;
  readonly line: string;
  readonly bars: Readonly<Record<string, string>>;
}

/** Colors of the plot on light and dark pages. */
export const SCHEMES: Readonly<Record<'light' | 'dark', Scheme>> = {
  light: {
    ink: '#1b1c1e',
    soft: '#5c6066',
    line: '#d9dbdf',
    bars: { fastify: '#9aa0a8', tutorial: '#b7791f', service: '#2455c3' },
  },
  dark: {
    ink: '#ecedef',
    soft: '#a2a7ae',
    line: '#3a3d42',
    bars: { fastify: '#6b7078', tutorial: '#d69e2e', service: '#7aa2ff' },
  },
};

/** Sizes in units of the SVG. Each scenario (a kind of request) has a group of three bars, one for each target. */
const LABEL_WIDTH = 250;
const WIDTH = 860;
const BAR_HEIGHT = 13;
const GROUP_HEIGHT = 3 * BAR_HEIGHT + 14;
const LEGEND_HEIGHT = 54;

/**
 * Returns an SVG bar chart of CPU times. A bar shows the CPU time of a scenario as a multiple of the CPU time of a bare Next.js
 * route.
 */
export function plot(cpu: Requests['cpu'], titles: ReadonlyMap<string, string>, scheme: Scheme): string {
  const names = cpu.map(({ scenario }) => scenario).filter((name) => name !== 'GET /hello');
  const targets = Object.keys(scheme.bars);
  const highest = Math.ceil(
    Math.max(...cpu.flatMap(({ ratios }) => Object.values(ratios).map(({ median }) => median))),
  );
  const x = (ratio: number) => LABEL_WIDTH + (ratio / highest) * (WIDTH - LABEL_WIDTH - 50);
  const height = LEGEND_HEIGHT + names.length * GROUP_HEIGHT + 30;
  const text = (left: number, top: number, content: string, rest = '') =>
    `<text x="${left.toFixed(1)}" y="${top.toFixed(1)}" ${rest}>${content}</text>`;
  const ticks = Array.from({ length: highest + 1 }, (_, ratio) => ratio);
  const lines = [
    ...ticks.map(
      (ratio) =>
        `<line x1="${x(ratio).toFixed(1)}" x2="${x(ratio).toFixed(1)}" y1="${LEGEND_HEIGHT - 8}" y2="${height - 26}" stroke="${
          ratio === 1 ? scheme.soft : scheme.line
        }" ${ratio === 1 ? 'stroke-dasharray="4 3"' : ''}/>`,
    ),
    ...ticks.map((ratio) =>
      text(x(ratio), height - 10, `${ratio}×`, `fill="${scheme.soft}" text-anchor="middle"`),
    ),
    ...targets.map((target, index) => {
      const left = LABEL_WIDTH + index * 200;
      return (
        `<rect x="${left}" y="14" width="12" height="12" fill="${scheme.bars[target]}"/>` +
        text(left + 18, 24, titles.get(target) ?? target, `fill="${scheme.ink}"`)
      );
    }),
    ...names.flatMap((name, group) => {
      const top = LEGEND_HEIGHT + group * GROUP_HEIGHT;
      return [
        text(LABEL_WIDTH - 10, top + 1.5 * BAR_HEIGHT + 4, name, `fill="${scheme.ink}" text-anchor="end"`),
        ...targets.map((target, index) => {
          const ratio = cpu.find(({ scenario }) => scenario === name)?.ratios[target];
          if (!ratio) return '';
          const { median } = ratio;
          const y = top + index * BAR_HEIGHT;
          return (
            `<rect x="${LABEL_WIDTH}" y="${y}" width="${(x(median) - LABEL_WIDTH).toFixed(1)}" height="${BAR_HEIGHT - 2}" fill="${scheme.bars[target]}"/>` +
            text(x(median) + 5, y + BAR_HEIGHT - 4, median.toFixed(1), `fill="${scheme.soft}" font-size="10"`)
          );
        }),
      ];
    }),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="CPU time of each kind of request as a multiple of a bare Next.js route">
${lines.join('\n')}
</svg>
`;
}
