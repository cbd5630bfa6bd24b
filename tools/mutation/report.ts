import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import * as z from 'zod/mini';
import { EQUIVALENT } from './equivalent';

const Position = z.object({ line: z.number(), column: z.number() });
const Mutant = z.object({
  status: z.string(),
  replacement: z.optional(z.string()),
  testsCompleted: z.optional(z.number()),
  location: z.object({ start: Position, end: Position }),
});
const Report = z.object({
  files: z.record(z.string(), z.object({ source: z.string(), mutants: z.array(Mutant) })),
});

/**
 * Result of a mutant (the code with one change). A mutant that does not compile or that crashes the test runner has no result.
 */
export interface Result {
  readonly file: string;
  readonly line: number;
  /** The position of the mutant in the format of Stryker, for example `lib/log.ts:3:5-3:20`. */
  readonly range: string;
  /** The first source line of the mutant, the replaced code and the replacement. */
  readonly text: string;
  readonly outcome: 'caught' | 'survived' | 'equivalent';
}

const OUTCOMES = new Map<string, 'caught' | 'survived'>([
  ['Killed', 'caught'],
  ['Timeout', 'caught'],
  ['Survived', 'survived'],
  ['NoCoverage', 'survived'],
]);

const MAX_LENGTH = 100;
const shorten = (code: string) => code.replaceAll(/\s+/g, ' ').trim().slice(0, MAX_LENGTH);

function textOf(lines: readonly string[], { location, replacement = '' }: z.infer<typeof Mutant>): string {
  const { start, end } = location;
  const replaced = lines.slice(start.line - 1, end.line);
  const last = replaced.length - 1;
  replaced[last] = replaced[last]?.slice(0, end.column - 1) ?? '';
  replaced[0] = replaced[0]?.slice(start.column - 1) ?? '';
  return `${shorten(lines[start.line - 1] ?? '')} | ${shorten(replaced.join('\n'))} → ${shorten(replacement)}`;
}

/**
 * Reads a report of Stryker. Throws an error if Stryker reports a mutant as killed (caught) although no test was completed. A
 * mutant that no test covers counts as survived.
 */
export function readReport(file: string): Result[] {
  const { files } = Report.parse(JSON.parse(readFileSync(file, 'utf8')));
  return Object.entries(files).flatMap(([name, { source, mutants }]) => {
    const lines = source.split('\n');
    return mutants.flatMap((mutant): Result[] => {
      const outcome = OUTCOMES.get(mutant.status);
      if (outcome === undefined) return [];
      const { start, end } = mutant.location;
      const { line } = start;
      if (mutant.status === 'Killed' && !mutant.testsCompleted)
        throw new Error(`${name}:${line}: the mutant is killed, but no test was completed.`);
      const text = textOf(lines, mutant);
      const isEquivalent =
        outcome === 'survived' && EQUIVALENT.some((each) => each.file === name && each.mutant === text);
      // Stryker counts columns from 1 in its report and from 0 in a range.
      const range = `${name}:${line}:${start.column - 1}-${end.line}:${end.column - 1}`;
      return [{ file: name, line, range, text, outcome: isEquivalent ? 'equivalent' : outcome }];
    });
  });
}

/**
 * Edits Stryker's file of earlier results: deletes the mutants that survived or that crashed the test runner, so that the next
 * run tests them again. Stryker itself reuses the result of a survived mutant until a test that covers the mutant changes. For
 * module-level code, Stryker does not know which tests cover a mutant, so it would not notice that such a test has changed. A
 * crash is not a result to reuse.
 */
export function dropUnreliableResults(file: string): void {
  if (!existsSync(file)) return;
  const report = JSON.parse(readFileSync(file, 'utf8'));
  for (const name of Object.keys(report.files)) {
    const { mutants } = report.files[name];
    report.files[name].mutants = mutants.filter(
      ({ status }: { status: string }) => status !== 'RuntimeError' && status !== 'Survived',
    );
  }
  writeFileSync(file, JSON.stringify(report));
}

/** Returns the results of the first run, with the outcome `caught` for each mutant that the second run (`again`) caught. */
export function combine(results: readonly Result[], again: readonly Result[]): Result[] {
  const keyOf = ({ range, text }: Result) => `${range} ${text}`;
  const caught = new Set(again.filter(({ outcome }) => outcome === 'caught').map(keyOf));
  return results.map((each) => (caught.has(keyOf(each)) ? { ...each, outcome: 'caught' } : each));
}

/** Replaces the stored results of the files in `results`. Returns the stored results of all files that still exist. */
export function storeResults(path: string, results: readonly Result[]): Result[] {
  const stored: Result[] = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : [];
  const files = new Set(results.map(({ file }) => file));
  const all = [...stored.filter(({ file }) => !files.has(file) && existsSync(file)), ...results];
  writeFileSync(path, JSON.stringify(all));
  return all;
}

/**
 * Returns the outdated entries of `EQUIVALENT` (the list of mutants that no test can catch). The mutant of such an entry was
 * caught or no longer exists. Skips entries of files without results.
 */
export const staleEntries = (results: readonly Result[]) =>
  EQUIVALENT.filter(({ file, mutant }) => {
    const ofFile = results.filter((each) => each.file === file);
    return (
      ofFile.length > 0 && !ofFile.some(({ outcome, text }) => outcome === 'equivalent' && text === mutant)
    );
  });

/** Returns a Markdown table. It has a row for the total, for each folder of lib/ and for each file directly in lib/. */
export function scoreTable(results: readonly Result[]): string {
  const rows = new Map<string, Result[]>([['total', [...results]]]);
  for (const result of results) {
    const name = result.file.split('/').slice(0, 2).join('/');
    rows.set(name, [...(rows.get(name) ?? []), result]);
  }
  const cells = [...rows].toSorted().map(([group, all]) => {
    const files = new Set(all.map(({ file }) => file));
    const [first = group] = files;
    // The row of a folder with one measured file has the name of that file.
    const name = files.size === 1 ? first : group;
    const count = (outcome: Result['outcome']) => all.filter((each) => each.outcome === outcome).length;
    const score = (100 * count('caught')) / all.length;
    return `${name}|${all.length}|${count('survived')}|${count('equivalent')}|${score.toFixed(1)}%`;
  });
  return ['File|Mutants|Survived|Equivalent|Caught', '---|--:|--:|--:|--:', ...cells].join('\n');
}
