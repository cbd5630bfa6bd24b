import type { CheckResult } from '#lib/doctor/check';
import { printable } from './command';

type Status = CheckResult['status'];

/** ANSI codes of the text colors. */
const COLORS = { ok: 32, skipped: 90, warning: 33, failure: 31 } as const;

export const countOf = (checks: readonly CheckResult[], status: Status): number =>
  checks.filter((check) => check.status === status).length;

/** Formats each check as one line, with a word for its status. A check with a remedy has a second line, which contains it. */
export function formatTable(checks: readonly CheckResult[], words: Readonly<Record<Status, string>>): string {
  const isColored = process.stdout.isTTY === true && !process.env['NO_COLOR'];
  const width = Math.max(...checks.map(({ name }) => name.length));
  const wordWidth = Math.max(...Object.values(words).map((word) => word.length));
  return checks
    .map(({ name, status, message, remedy }) => {
      const word = words[status].padEnd(wordWidth);
      const shown = isColored ? `\x1b[${COLORS[status]}m${word}\x1b[0m` : word;
      const next = remedy ? `\n${' '.repeat(width + wordWidth + 4)}-> ${printable(remedy)}` : '';
      return `${shown}  ${name.padEnd(width)}  ${printable(message)}${next}\n`;
    })
    .join('');
}
