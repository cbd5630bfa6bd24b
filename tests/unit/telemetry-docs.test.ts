import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';

const codes = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
const rows = [...readFileSync('docs/telemetry.md', 'utf8').matchAll(/^\| `.*\|$/gm)]
  .map(([row]) => row.split(' | '))
  .filter((cells) => cells.length === 6);

/** As Prometheus has them. The receiver's test holds the table to what is sent. */
const METRICS = rows.flatMap((cells) => codes(cells[5]));
const LABELS = ['le', ...rows.flatMap((cells) => codes(cells[3])).map((name) => name.replaceAll('.', '_'))];

const WORDS = new Set(['by', 'and', 'unless']);
const names = (text: string) => [...text.matchAll(/(?<![\w.$])[a-z_]\w*/gi)].map(([name]) => name);

/** The metrics and the labels of an expression in PromQL, as far as the expressions here go. */
function namesIn(expression: string): { metrics: string[]; labels: string[] } {
  const ranges = expression.replaceAll(/\[[^\]]*\]/g, '');
  const selectors = [...ranges.matchAll(/\{([^}]*)\}/g)].map(([, inside = '']) =>
    inside.replaceAll(/"[^"]*"/g, ''),
  );
  const groups = [...ranges.matchAll(/\bby \(([^)]*)\)/g)].map(([, inside = '']) => inside);
  const bare = ranges.replaceAll(/\{[^}]*\}|\bby \([^)]*\)/g, '').replaceAll(/\b\w+(?=\s*\()/g, '');
  return {
    metrics: names(bare).filter((name) => !WORDS.has(name)),
    labels: [...selectors, ...groups].flatMap(names),
  };
}

const Dashboard = z.object({
  panels: z.array(
    z.object({
      title: z.string(),
      targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })),
    }),
  ),
});
const targets = Dashboard.parse(
  JSON.parse(readFileSync('docs/telemetry/dashboard.json', 'utf8')),
).panels.flatMap((panel) => panel.targets);

/** What stands behind `expr:`, in the line or indented below it. */
const rules = [
  ...readFileSync('docs/telemetry/alerts.yaml', 'utf8').matchAll(
    /^( *)expr: (?:\|\n((?:\1 {2}.*\n)+)|(.*)\n)/gm,
  ),
].map(([, , block, line]) => block ?? line ?? '');

test('an expression is read as Prometheus reads it', () => {
  expect(
    namesIn('sum by (le, a) (rate(x_total{b=~"5..", c="d"}[$__rate_interval])) / y unless max(z) > 0'),
  ).toEqual({ metrics: ['x_total', 'y', 'z'], labels: ['b', 'c', 'le', 'a'] });
});

test.each([
  ['the dashboard', targets.map(({ expr }) => expr), 12],
  ['the alert rules', rules, 5],
])('%s: made of metrics and labels that exist, and of nothing else', (_what, expressions, count) => {
  expect(METRICS.length).toBeGreaterThan(10);
  expect(expressions.length).toBeGreaterThanOrEqual(count);
  for (const expression of expressions) {
    const { metrics, labels } = namesIn(expression);
    expect(metrics.length, expression).toBeGreaterThan(0);
    expect(metrics.filter((name) => !METRICS.includes(name))).toEqual([]);
    expect(labels.filter((name) => !LABELS.includes(name))).toEqual([]);
  }
});

test('the dashboard shows every metric', () => {
  const shown = targets.flatMap(({ expr }) => namesIn(expr).metrics);
  const families = (of: readonly string[]) =>
    new Set(of.map((name) => name.replace(/_(?:bucket|count|sum)$/, '')));
  expect(families(shown)).toEqual(families(METRICS));
});

test('what names a line of the dashboard is a label that exists', () => {
  const named = targets.flatMap(({ legendFormat }) => [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]);
  expect(named.map(([, name]) => name).filter((name) => !LABELS.includes(name ?? ''))).toEqual([]);
});
