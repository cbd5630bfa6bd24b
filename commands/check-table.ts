import type { CheckResult } from '#lib/base/check';
import { print, printable } from './command';

/** Words and ANSI codes of the text colors. */
const STATUSES = {
  ok: ['ok', 32],
  skipped: ['skipped', 90],
  warning: ['warning', 33],
  failure: ['FAILURE', 31],
} as const;

/** Formats each check as one line. A check with a remedy has a second line, which contains it. */
function formatTable(checks: readonly CheckResult[]): string {
  const isColored = process.stdout.isTTY === true && !process.env['NO_COLOR'];
  const width = Math.max(...checks.map(({ name }) => name.length));
  return checks
    .map(({ name, status, message, remedy }) => {
      const [word, color] = STATUSES[status];
      const shown = isColored ? `\x1b[${color}m${word.padEnd(7)}\x1b[0m` : word.padEnd(7);
      const next = remedy ? `\n${' '.repeat(width + 11)}-> ${printable(remedy)}` : '';
      return `${shown}  ${name.padEnd(width)}  ${printable(message)}${next}\n`;
    })
    .join('');
}

/** Prints checks as a table or as JSON, with their totals and `facts`. Sets the exit code to 1 if a check has failed. */
export function report(
  checks: readonly CheckResult[],
  json = false,
  facts: Readonly<Record<string, string>> = {},
): void {
  const countOf = (status: CheckResult['status']) => checks.filter((each) => each.status === status).length;
  const [failures, warnings] = [countOf('failure'), countOf('warning')];
  const totals = `${countOf('ok')} ok, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}, ${failures} failed, ${countOf('skipped')} skipped`;
  const more = Object.entries(facts).map(([name, value]) => `, ${name} ${value}`);
  const status = failures === 0 ? 'ok' : 'failure';
  if (json) print(JSON.stringify({ status, ...facts, checks }, null, 2));
  else process.stdout.write(`${formatTable(checks)}\n${totals}${more.join('')}\n`);
  process.exitCode = failures === 0 ? 0 : 1;
}
