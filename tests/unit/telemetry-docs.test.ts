import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';

/** Returns the texts between backticks in a table cell. */
const codes = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
const rows = [...readFileSync('docs/telemetry.md', 'utf8').matchAll(/^\| `.*\|$/gm)]
  .map(([row]) => row.split(' | '))
  .filter((cells) => cells.length === 6);

/**
 * Prometheus names in the table of metrics in docs/telemetry.md. tests/service/telemetry.test.ts compares this table with the
 * exported metrics.
 */
const METRICS = rows.flatMap((cells) => codes(cells[5]));
const LABELS = ['le', ...rows.flatMap((cells) => codes(cells[3])).map((name) => name.replaceAll('.', '_'))];

/** Keywords of PromQL that the expressions in docs/telemetry use. */
const KEYWORDS = new Set(['by', 'and', 'unless']);
/** Returns the identifiers in a text. */
const names = (text: string) => [...text.matchAll(/(?<![\w.$])[a-z_]\w*/gi)].map(([name]) => name);

/** Returns the metrics and labels of a PromQL expression. Supports only the syntax that docs/telemetry uses. */
function namesIn(expression: string): { metrics: string[]; labels: string[] } {
  const ranges = expression.replaceAll(/\[[^\]]*\]/g, '');
  const selectors = [...ranges.matchAll(/\{([^}]*)\}/g)].map(([, inside = '']) =>
    inside.replaceAll(/"[^"]*"/g, ''),
  );
  const groups = [...ranges.matchAll(/\bby \(([^)]*)\)/g)].map(([, inside = '']) => inside);
  const bare = ranges.replaceAll(/\{[^}]*\}|\bby \([^)]*\)/g, '').replaceAll(/\b\w+(?=\s*\()/g, '');
  return {
    metrics: names(bare).filter((name) => !KEYWORDS.has(name)),
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

/** Expressions of the alert rules. An expression is on the same line as `expr:`, or in an indented block below this line. */
const rules = [
  ...readFileSync('docs/telemetry/alerts.yaml', 'utf8').matchAll(
    /^( *)expr: (?:\|\n((?:\1 {2}.*\n)+)|(.*)\n)/gm,
  ),
].map(([, , block, line]) => block ?? line ?? '');

test('namesIn() returns the metrics and the labels of a PromQL expression', () => {
  expect(
    namesIn('sum by (le, a) (rate(x_total{b=~"5..", c="d"}[$__rate_interval])) / y unless max(z) > 0'),
  ).toEqual({ metrics: ['x_total', 'y', 'z'], labels: ['b', 'c', 'le', 'a'] });
});

test.each([
  ['The queries of the dashboard', targets.map(({ expr }) => expr), 12],
  ['The alert rules', rules, 5],
])('%s use only metrics and labels of docs/telemetry.md', (_what, expressions, count) => {
  expect(METRICS.length).toBeGreaterThan(10);
  expect(expressions.length).toBeGreaterThanOrEqual(count);
  for (const expression of expressions) {
    const { metrics, labels } = namesIn(expression);
    expect(metrics.length, expression).toBeGreaterThan(0);
    expect(metrics.filter((name) => !METRICS.includes(name))).toEqual([]);
    expect(labels.filter((name) => !LABELS.includes(name))).toEqual([]);
  }
});

test('The dashboard shows exactly the metrics of docs/telemetry.md', () => {
  const shown = targets.flatMap(({ expr }) => namesIn(expr).metrics);
  const families = (of: readonly string[]) =>
    new Set(of.map((name) => name.replace(/_(?:bucket|count|sum)$/, '')));
  expect(families(shown)).toEqual(families(METRICS));
});

test('The legends of the dashboard use only labels of docs/telemetry.md', () => {
  const named = targets.flatMap(({ legendFormat }) => [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)]);
  expect(named.map(([, name]) => name).filter((name) => !LABELS.includes(name ?? ''))).toEqual([]);
});
